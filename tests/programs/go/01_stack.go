// Package stack holds a small generic stack and a calculator that uses it.
package stack

import (
	"errors"
	"fmt"
	"strings"
)

// ErrEmpty is returned by Pop and Peek of an empty stack.
var ErrEmpty = errors.New("stack: empty")

type Stack[T any] struct {
	items []T
	limit int
}

type Number interface {
	~int | ~int64 | ~float64
}

func Sum[N Number](values []N) N {
	var total N
	for _, value := range values {
		total += value
	}
	return total
}

func (s *Ints) Push(value int) error {
	if s.limit > 0 && len(s.items) >= s.limit {
		return fmt.Errorf("stack: limit of %d reached", s.limit)
	}
	s.items = append(s.items, value)
	return nil
}

func (s *Ints) Pop() (int, error) {
	if len(s.items) == 0 {
		return 0, ErrEmpty
	}
	last := len(s.items) - 1
	value := s.items[last]
	s.items = s.items[:last]
	return value, nil
}

type Ints struct {
	items []int
	limit int
}

/* Eval computes an expression in postfix notation,
 * such as "3 4 + 2 *"; it knows + - * and /.
 */
func Eval(text string) (result int, err error) {
	s := new(Ints)
	for _, word := range strings.Fields(text) {
		switch word {
		case "+", "-", "*", "/":
			b, errB := s.Pop()
			a, errA := s.Pop()
			if errA != nil || errB != nil {
				return 0, errors.Join(errA, errB)
			}
			value, failure := apply(word[0], a, b)
			if failure != nil {
				return 0, failure
			}
			s.Push(value)
		default:
			n := 0
			if _, err := fmt.Sscanf(word, "%d", &n); err != nil {
				return 0, err
			}
			s.Push(n)
		}
	}
	return s.Pop()
}

func apply(op byte, a, b int) (int, error) {
	switch op {
	case '+':
		return a + b, nil
	case '-':
		return a - b, nil
	case '*':
		return a * b, nil
	case '/':
		if b == 0 {
			return 0, errors.New("division by zero")
		}
		return a / b, nil
	}
	return 0, fmt.Errorf("unknown operator %q", op)
}

// ---------------------------------------------------------------- queues

type Queue struct {
	ring        []int
	head, count int
}

func NewQueue(size int) *Queue {
	q := new(Queue)
	q.ring = make([]int, size)
	return q
}

func (q *Queue) Put(value int) bool {
	if q.count == len(q.ring) {
		return false
	}
	q.ring[(q.head+q.count)%len(q.ring)] = value
	q.count++
	return true
}

func (q *Queue) Get() (value int, ok bool) {
	if q.count == 0 {
		return
	}
	value, ok = q.ring[q.head], true
	q.head = (q.head + 1) % len(q.ring)
	q.count--
	return
}

// ----------------------------------------------------------------- lists

type Element struct {
	next, prev *Element
	Value      interface{}
}

type List struct {
	root Element
	size int
}

func (l *List) Init() *List {
	l.root.next = &l.root
	l.root.prev = &l.root
	l.size = 0
	return l
}

func (l *List) insert(e, at *Element) *Element {
	e.prev = at
	e.next = at.next
	e.prev.next = e
	e.next.prev = e
	l.size++
	return e
}

func (l *List) Back(v interface{}) *Element {
	e := new(Element)
	e.Value = v
	return l.insert(e, l.root.prev)
}

func (l *List) Each(visit func(interface{})) {
	e := l.root.next
	for e != &l.root {
		visit(e.Value)
		e = e.next
	}
}

func (l *List) Strings() (out []string) {
	l.Each(func(v interface{}) {
		switch x := v.(type) {
		case string:
			out = append(out, x)
		case int, int64:
			out = append(out, fmt.Sprint(x))
		case []byte:
			out = append(out, string(x))
		case func() string:
			out = append(out, x())
		case map[string][]int, chan<- int, <-chan int, *List, [2]bool:
			out = append(out, "?")
		}
	})
	return out
}
