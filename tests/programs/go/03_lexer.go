package lexer

import (
	"unicode"
	u8 "unicode/utf8"
)

type Kind int

const (
	EOF Kind = iota
	Ident
	Number
	String
	Symbol
)

const eof = -1

var names = [...]string{"EOF", "identifier", "number", "string", "symbol"}

var keywords = map[string]bool{"if": true, "else": true, "während": false, "für": true}

func (k Kind) String() string { return names[k] }

type Token struct {
	Kind  Kind   `json:"kind"`
	Text  string `json:"text,omitempty"`
	Start int    `json:"-"`
}

type stateFn func(*Lexer) stateFn

type Lexer struct {
	input             string
	start, pos, width int
	emit              func(Token)
}

func (l *Lexer) next() rune {
	if l.pos >= len(l.input) {
		l.width = 0
		return eof
	}
	r, w := u8.DecodeRuneInString(l.input[l.pos:])
	l.width = w
	l.pos += w
	return r
}

func (l *Lexer) backup() { l.pos -= l.width }

func (l *Lexer) send(kind Kind) {
	var t Token
	t.Kind = kind
	t.Text = l.input[l.start:l.pos]
	t.Start = l.start
	l.emit(t)
	l.start = l.pos
}

// Run is a loop over state functions: each returns the next one, nil at the end.
func (l *Lexer) Run() {
	state := stateFn(lexAny)
	for state != nil {
		state = state(l)
	}
}

func lexAny(l *Lexer) stateFn {
	r := l.next()
	switch {
	case r == eof:
		l.send(EOF)
		return nil
	case r == '"', r == '\'':
		return lexString(r)
	case r == '\t', r == '\n', r == '\u00a0', r == ' ':
		l.start = l.pos
	case r == '_' || unicode.IsLetter(r):
		return lexName
	case '0' <= r && r <= '9':
		return lexNumber
	default:
		l.send(Symbol)
	}
	return lexAny
}

func lexName(l *Lexer) stateFn {
	for {
		r := l.next()
		if !(unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_') {
			l.backup()
			break
		}
	}
	l.send(Ident)
	return lexAny
}

func lexNumber(l *Lexer) stateFn {
	for unicode.IsDigit(l.next()) {
	}
	l.backup()
	l.send(Number)
	return lexAny
}

func lexString(quote rune) stateFn {
	return func(l *Lexer) stateFn {
		for r := l.next(); r != quote && r != eof; r = l.next() {
			if r == '\\' {
				l.next() // whatever it is: \" \' or \\
			}
		}
		l.send(String)
		return lexAny
	}
}
