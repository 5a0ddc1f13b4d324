package main

import (
	"fmt"
	"math"
	"os"
	"sort"
)

type Shape interface {
	Area() float64
	Perimeter() float64
	fmt.Stringer
}

type Point struct {
	X, Y float64
}

type Circle struct {
	Point
	Radius float64
}

type Polygon struct {
	*Point "the centre"
	Corners []Point
	label   string
}

func (c Circle) Area() float64      { return math.Pi * c.Radius * c.Radius }
func (c Circle) Perimeter() float64 { return 2 * math.Pi * c.Radius }
func (c Circle) String() string     { return fmt.Sprintf("⌀ %.2f", 2*c.Radius) }

func (p *Polygon) Area() float64 {
	twice := 0.0
	for i, a := range p.Corners {
		b := p.Corners[(i+1)%len(p.Corners)]
		twice += a.X*b.Y - b.X*a.Y
	}
	return math.Abs(twice) / 2
}

func (p *Polygon) Perimeter() (sum float64) {
	for i := range p.Corners {
		j := (i + 1) % len(p.Corners)
		sum += math.Hypot(
			p.Corners[j].X-p.Corners[i].X,
			p.Corners[j].Y-p.Corners[i].Y)
	}
	return
}

func (p *Polygon) String() string {
	return p.label + " (" + fmt.Sprint(len(p.Corners)) + " corners)"
}

func describe(s Shape) string {
	switch v := s.(type) {
	case nil:
		return "nothing"
	case *Polygon:
		return "polygon " + v.label
	case Circle, *Circle:
		return "circle"
	case interface{ Volume() float64 }:
		return "a body"
	default:
		return "some shape"
	}
}

func main() {
	square := new(Polygon)
	square.label = "Quadrat\t\"1×1\"\n"
	square.Corners = []Point{{0, 0}, {X: 1, Y: 0}, {1, 1}, {Y: 1}}
	shapes := []Shape{square, circle(2.5), circle(1e-1)}
	sort.Slice(shapes, func(i, j int) bool {
		return shapes[i].Area() < shapes[j].Area()
	})
	for n, shape := range shapes {
		fmt.Printf("%2d. %-12s %8.3f %v\n", n+1, describe(shape), shape.Area(), shape)
	}
	if len(os.Args) > 1 && os.Args[1] == "-v" {
		fmt.Fprintln(os.Stderr, `done: \n is not a newline here`)
	} else if len(os.Args) > 2 {
		os.Exit(2)
	} else {
		return
	}
}

func circle(r float64) Circle {
	var c Circle
	c.Radius = r
	return c
}
