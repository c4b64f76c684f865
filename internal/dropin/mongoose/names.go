package mongoose

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"carronade/load"
	"carronade/payload"
)

// A namer names items as mongoose does: a prefix, which may be an expression, and the item's
// number in a radix, without leading zeros. Each number is computed from the previous one: by
// a step, or by a xorshift generator. It is less than the radix to the power of the maximum
// number of digits. It is also where the item's bytes begin in the ring of data.
type namer struct {
	prefix, number *payload.Template
	radix          int
	wrap           int64            // numbers are less
	items          load.Partitioner // of a run: which item an event is
	made           uint64           // by next
}

// namer returns the names of the step's items.
func (s *step) namer() *namer {
	n := &namer{radix: int(s.v.number("item-naming-radix")), items: load.Single()}
	n.wrap = wrapOf(s.v.number("item-naming-radix"), s.v.number("item-naming-length"))
	n.number, n.prefix = mustParse(s.numberText()), mustParse(s.prefixText())
	return n
}

// mustParse compiles an expression that is our own, or was checked.
func mustParse(text string) *payload.Template {
	t, err := payload.ParseTemplate(text, payload.TemplateOptions{})
	if err != nil {
		panic(fmt.Sprintf("mongoose: the expression %s: %v", text, err))
	}
	return t
}

// numberText is the expression for the numbers of items. The first one is the one after the
// seed.
func (s *step) numberText() string {
	wrap := wrapOf(s.v.number("item-naming-radix"), s.v.number("item-naming-length"))
	next := "int64:xorShift(this.last())"
	if step := s.v.number("item-naming-step"); s.namingType() != "random" {
		if s.namingType() == "desc" {
			step = -step
		}
		next = fmt.Sprintf("(this.last() + %s)", integerText(step))
	}
	return fmt.Sprintf("${math:absInt64(%s %% %d)}%%{%s}", next, wrap, integerText(s.namingSeed))
}

// integerText is an integer in an expression, which has no literal for the smallest one.
func integerText(n int64) string {
	if n == math.MinInt64 {
		return "(-9223372036854775807 - 1)"
	}
	return "(" + strconv.FormatInt(n, 10) + ")"
}

// wrapOf is radix^length as mongoose computes it: as a real number, and at most 2^63-1.
func wrapOf(radix, length int64) int64 {
	exact := new(big.Int).Exp(big.NewInt(radix), big.NewInt(length), nil)
	f, _ := new(big.Float).SetInt(exact).Float64()
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}

// namingType is the type of names: random, serial, asc or desc.
func (s *step) namingType() string { return strings.ToLower(s.v.text("item-naming-type")) }

// prefixText is the text before the number.
func (s *step) prefixText() string { return s.v.text("item-naming-prefix") }

// setNaming checks the options for names, and sets the seed: without one it is made of the
// time.
func (s *step) setNaming(now time.Time) error {
	if n := s.v.number("item-naming-length"); n < 1 || n > 64 {
		return fmt.Errorf("--item-naming-length: %d is not from 1 to 64", n)
	}
	if r := s.v.number("item-naming-radix"); r < 2 || r > 36 {
		return fmt.Errorf("--item-naming-radix: %d is not from 2 to 36", r)
	}
	switch s.namingType() {
	case "random", "serial", "asc", "desc":
	default:
		return fmt.Errorf("--item-naming-type: unknown type %q: random, serial, asc or desc", s.v.text("item-naming-type"))
	}
	s.namingSeed = int64(bits.Reverse64(uint64(now.UnixMilli())) ^ bits.ReverseBytes64(uint64(now.UnixNano())))
	if text := s.v.text("item-naming-seed"); text != "" {
		var err error
		if s.namingSeed, err = strconv.ParseInt(text, 10, 64); err != nil {
			return fmt.Errorf("--item-naming-seed: %q is not a 64-bit integer", text)
		}
	}
	use := payload.Live
	if s.keyed { // a key must be the same whenever it is needed
		use = payload.Repeatable
	}
	if _, err := s.v.compile(s.prefixText(), payload.TemplateOptions{Use: use}); err != nil {
		return fmt.Errorf("--item-naming-prefix: %w", err)
	}
	return nil
}

// divided says among how many streams a run divides its items.
func (n *namer) divided(streams int) { n.items = load.RoundRobin(max(1, streams)) }

// next is the next item's name and number.
func (n *namer) next() (name string, id int64) {
	n.made++
	return n.at(n.made - 1)
}

// at is the name and the number of an item.
func (n *namer) at(item uint64) (name string, id int64) {
	id = n.number.Integer(item)
	return n.name(item, id), id
}

// name is the name of an item by its number.
func (n *namer) name(item uint64, id int64) string { return string(n.append(nil, item, id)) }

func (n *namer) append(dst []byte, item uint64, id int64) []byte {
	return strconv.AppendInt(n.prefix.Append(dst, item), id, n.radix)
}

// appendOf appends the name of a record, given its stream and event, and returns its number.
func (n *namer) appendOf(dst []byte, stream int32, event uint64) (name []byte, id int64) {
	item := n.items.Event(stream, event)
	id = n.number.Integer(item)
	return n.append(dst, item, id), id
}
