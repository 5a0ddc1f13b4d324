// Inventory: maps of maps, sorting, text.

// A comment of its own, then an empty line; the file has CRLF line ends.
package inventory

import (
	"bufio"
	"fmt"
	str "strings"

	_ "embed"
)

type Item struct {
	Name  string
	Price float64
	Count int
	Tags  map[string]struct{}
}

type Shelf map[string]*Item
type Store map[string]map[string][]*Item

var empty = struct{}{}

var prices = map[string]float64{
	"Äpfel":  2.49, // per kilogram
	"Öl":     7.,
	"pâté":   .99,
	"寿司":     12.5e0,
	"сыр":    1e1, "🥖": 1.2}

func Parse(text string) (Shelf, error) {
	shelf := make(Shelf)
	scanner := bufio.NewScanner(str.NewReader(text))
	line := 0
	for scanner.Scan() {
		line++
		fields := str.Split(scanner.Text(), ";")
		if len(fields) < 3 {
			return nil, fmt.Errorf("line %d: %q", line, fields)
		}

		item := new(Item)
		item.Name = str.TrimSpace(fields[0])
		item.Tags = map[string]struct{}{}
		for _, tag := range fields[3:] {
			item.Tags[tag] = empty
		}
		if old, ok := shelf[item.Name]; ok {
			old.Count += item.Count
			continue
		}
		shelf[item.Name] = item
	}
	return shelf, scanner.Err()
}

func (s Shelf) Total() (sum float64) {
	for name, item := range s {
		price, known := prices[name]
		if !known {
			price = item.Price
		}
		sum += price * float64(item.Count)
	}
	return sum
}

/* single line */ /* and one more **/
func (s Store) Walk(visit func(place, name string, items []*Item) bool) {
	for place, shelf := range s {
		for name, items := range shelf {
			if !visit(place, name, items) { return }
		}
	}
}

func Histogram(text string) [26]int {
	var counts [26]int
	for i := 0; i < len(text); i++ {
		if c := text[i] | ' '; 'a' <= c && c <= 'z' {
			counts[c-'a']++
		}
	}
	return counts
}

func Bar(n int) string {
	return "|" + str.Repeat("█", n) + str.Repeat("·", 10-n) + `|` + "\t'\\'"
}

/* the end: a comment over
   two lines, and no newline after it */