package payload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"index/suffixarray"
	"io"
	"math"
	"strconv"
	"strings"

	"carronade/internal/place"
)

// CheckForms are the text forms of a Check.
const CheckForms = "ring(SIZE,SEED) or ring(SIZE,file:PATH), as values were made: a value must be a piece of the ring; " +
	"ring(SIZE,names(RADIX[,PREFIX]),SEED): the piece that its key names; ring(SIZE,list(FILE),SEED): that of the list"

// A Check says whether values are those that were sent: pieces of a ring (see PayloadForms).
// It does not change, so it is safe for concurrent use.
type Check struct {
	text   string
	ring   *ring
	items  []checkedItem // of a list
	radix  int           // of names; 0: keys say nothing
	prefix []byte        // before the number in a name

	// Any piece: an index of the ring and of as much of its start as a probe has.
	index *suffixarray.Index
}

// A checkedItem is an item of a list.
type checkedItem struct {
	offset uint64
	size   int64
}

// mostProbe limits the bytes of a value that are looked up; the rest is compared.
const mostProbe = 64

// ParseCheck reads a check: see CheckForms. It reads the files that it names.
func ParseCheck(text string) (*Check, error) {
	name, args, ok := splitCall(text)
	if !ok || name != "ring" || name == text {
		return nil, specError("check", text, errors.New("it is not a ring"), CheckForms)
	}
	f, err := parseRing(args, 0)
	if err == nil && f.number != nil {
		err = errors.New("an expression does not say which value has which key")
	}
	c := &Check{text: text}
	if err == nil {
		err = c.parseMiddle(f.middle)
	}
	if err == nil {
		c.ring, err = f.make()
	}
	if err != nil {
		return nil, specError("check", text, err, CheckForms)
	}
	if c.items == nil {
		data := c.ring.data
		c.index = suffixarray.New(c.ring.append(bytes.Clone(data), 0, mostProbe))
	}
	return c, nil
}

// parseMiddle reads names(RADIX,PREFIX) or list(FILE).
func (c *Check) parseMiddle(text string) (err error) {
	name, args, _ := splitCall(text)
	switch name {
	case "":
		return nil
	case "names":
		radix, prefix, _ := strings.Cut(args, ",")
		if c.radix, err = strconv.Atoi(radix); err != nil || c.radix < 2 || c.radix > 36 {
			return fmt.Errorf("%q is not a radix from 2 to 36", radix)
		}
		c.prefix = []byte(prefix)
		return nil
	case "list":
		c.items, err = readCheckedItems(args)
		return err
	}
	return fmt.Errorf("%q is neither names(...) nor list(...)", shortened(text))
}

// readCheckedItems reads a list of items in mongoose's format.
func readCheckedItems(path string) ([]checkedItem, error) {
	f, err := place.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the list: %w", err)
	}
	defer f.Close()
	return parseCheckedItems(f, path)
}

// parseCheckedItems reads lines PATH,OFFSET,SIZE,LAYER/MASK; a line for each item.
func parseCheckedItems(in io.Reader, name string) ([]checkedItem, error) {
	out := []checkedItem{}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" {
			continue
		}
		fields := strings.Split(line, ",")
		if len(fields) < 4 {
			return nil, fmt.Errorf("%s:%d: %q is not PATH,OFFSET,SIZE,LAYER/MASK", name, n, shortened(line))
		}
		fields = fields[len(fields)-3:]
		offset, err := strconv.ParseInt(fields[0], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %q is not a hexadecimal offset", name, n, shortened(fields[0]))
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || size < 0 {
			return nil, fmt.Errorf("%s:%d: %q is not a size", name, n, shortened(fields[1]))
		}
		if fields[2] != "0/0" {
			return nil, fmt.Errorf("%s:%d: the item was updated (%s), which records cannot be", name, n, shortened(fields[2]))
		}
		out = append(out, checkedItem{uint64(offset) & math.MaxInt64, size})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the list %s: %w", name, err)
	}
	return out, nil
}

// Items returns the number of items of the list that the check names; 0 without one.
func (c *Check) Items() int { return len(c.items) }

// Value reports whether a value is the one of an item, which is its number in the list, or
// else of its key, or else of any.
func (c *Check) Value(item uint64, key, value []byte) bool {
	if c.items != nil {
		if item >= uint64(len(c.items)) {
			return false
		}
		want := &c.items[item]
		return int64(len(value)) == want.size && c.ring.has(value, want.offset)
	}
	if digits, ok := bytes.CutPrefix(key, c.prefix); ok && c.radix > 0 {
		if n, err := strconv.ParseUint(string(digits), c.radix, 63); err == nil {
			return c.ring.has(value, n)
		}
	}
	if len(value) == 0 {
		return true
	}
	const most = 16 // places of a probe: of a file that repeats there are more
	for _, at := range c.index.Lookup(value[:min(len(value), mostProbe)], most) {
		if c.ring.has(value, uint64(at)) {
			return true
		}
	}
	return false
}
