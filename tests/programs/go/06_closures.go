package closures

import "fmt"

type Predicate func(int) bool
type Option func(*config) error
type Visitor func(node *Node, depth int) (next Visitor, err error)

type config struct {
	name    string
	retries int
	hooks   []func(string, ...interface{})
}

type Node struct {
	value       int
	left, right *Node
}

func Not(p Predicate) Predicate {
	return func(n int) bool { return !p(n) }
}

func All(ps []Predicate) Predicate {
	return func(n int) bool {
		for _, p := range ps {
			if !p(n) { return false }
		}
		return true
	}
}

func Fibonacci() func() int {
	a, b := 0, 1
	return func() int {
		defer func() { a, b = b, a+b }()
		return a
	}
}

func WithName(name string) Option {
	return func(c *config) error {
		if name == "" {
			return fmt.Errorf("empty name")
		}
		c.name = name
		return nil
	}
}

func WithHook(hook func(string, ...interface{})) Option {
	return func(c *config) error {
		c.hooks = append(c.hooks, hook)
		return nil
	}
}

func build(options []Option) (*config, error) {
	c := new(config)
	for i, option := range options {
		if err := option(c); err != nil {
			return nil, fmt.Errorf("option %d: %w", i, err)
		}
	}
	return c, nil
}

func (n *Node) Walk(visit Visitor, depth int) error {
	if n == nil || visit == nil {
		return nil
	}
	next, err := visit(n, depth)
	if err != nil {
		return err
	}
	if err = n.left.Walk(next, depth+1); err != nil {
		return err
	}
	return n.right.Walk(next, depth+1)
}

var square, cube = func(x int) int { return x * x }, func(x int) int {
	return x * x * x
}

var table = map[string]func(float64, float64) float64{
	"add": func(a, b float64) float64 { return a + b },
	"sub": func(a, b float64) float64 { return a - b },
	"neg": func(a, _ float64) float64 { return -a }}

var now = func() string { return "jetzt" }()

func curry(a int) func(int) func(int) int {
	return func(b int) func(int) int {
		return func(c int) int {
			return a*100 + b*10 + c
		}
	}
}

var onetwothree = curry(1)(2)(3)

// Config gives the fields that other languages' generators like to name after keywords.
func Config(m *message) (string, int) {
	if m.type == "import" && m.range.go != 0 {
		return m.package.func(m.map["var"]), m.select
	}
	return m.default, m.if + m.else*m.for
}
