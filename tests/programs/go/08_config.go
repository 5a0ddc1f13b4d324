package config

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

type Duration time.Duration

type Server struct {
	Host     string            `json:"host" yaml:"host"`
	Port     uint16            `json:"port" yaml:"port"`
	TLS      *TLS              `json:"tls,omitempty"`
	Headers  map[string]string `json:"headers"`
	Timeouts struct {
		Read, Write Duration
		Idle        Duration `json:"idle"`
	} `json:"timeouts"`
	Routes []struct {
		Path    string
		Methods []string
		Weights [4]float32
	}
	handler http.Handler
	started chan struct{}
	log     func(level int, message string)
}

type TLS struct {
	Cert, Key string
	Versions  []string
}

const fallback = `{
	"host": "localhost",
	"port": 8080,
	"headers": {"X-Größe": "“viel”", "Accept": "*/*"}
}`

const banner = "config \x1b[1mloaded\x1b[0m \u2713 \U0001F600 \101 \\ \"\a\b\f\r\v\n"

var _ = banner

func Load(path string) (*Server, error) {
	var reader io.Reader = strings.NewReader(fallback)
	if path != "" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		reader = file
	}
	server := new(Server)
	decoder := json.NewDecoder(reader)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(server); err != nil && err != io.EOF {
		return nil, err
	}
	server.defaults()
	return server, server.check()
}

func (s *Server) defaults() {
	if s.Timeouts.Read == 0 {
		s.Timeouts.Read = Duration(30 * time.Second)
	}
	s.Timeouts.Write, s.Timeouts.Idle = s.Timeouts.Read, 2*s.Timeouts.Read
	if s.Headers == nil {
		s.Headers = map[string]string{"Server": "tiny/0.1", "X-Empty": ""}
	}
	for i := range s.Routes {
		if len(s.Routes[i].Methods) == 0 {
			s.Routes[i].Methods = []string{http.MethodGet, "HEAD"}
		}
	}
}

func (s *Server) check() error {
	for _, rule := range []struct { ok bool; text string }{
		{s.Port > 0, "port"},
		{s.Host != "", "host"},
		{s.TLS == nil || s.TLS.Cert != "", "tls.cert"}} {
		if !rule.ok {
			return errorOf(rule.text)
		}
	}
	return nil
}

type errorOf string

func (e errorOf) Error() string { return "config: bad value of " + string(e) }
