package mongoose

import (
	"math"
	"strconv"
	"strings"
)

// A namer names items as mongoose does: a prefix and a number in a radix, with a
// maximum number of digits. The numbers of the random type come from mongoose's
// generator (xorshift64), each computed from the previous one.
type namer struct {
	prefix      string
	radix       int
	wrap        uint64 // numbers are below it
	step, start int64
	kind        string
	last        int64
}

func newNamer(v *values, now int64) *namer {
	n := &namer{
		prefix: v.text("item-naming-prefix"), radix: int(v.number("item-naming-radix")), step: v.number("item-naming-step"),
		kind: v.text("item-naming-type"), wrap: 1,
	}
	for range v.number("item-naming-length") {
		if n.wrap > math.MaxInt64/uint64(n.radix) {
			n.wrap = math.MaxInt64
			break
		}
		n.wrap *= uint64(n.radix)
	}
	seed, err := strconv.ParseInt(v.text("item-naming-seed"), 10, 64)
	if err != nil {
		if seed = now; n.kind != "random" {
			seed = -n.step // the first is 0
			if n.kind == "desc" {
				seed = n.step
			}
		}
	}
	if seed == 0 && n.kind == "random" {
		seed = 1 // from 0 the generator makes only 0
	}
	n.start, n.last = seed, seed
	return n
}

// next is the next item's name and number; the first is the one after the seed.
func (n *namer) next() (name string, id int64) {
	switch n.kind {
	case "random":
		x := uint64(n.last)
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		n.last = int64(x)
	case "desc":
		n.last -= n.step
	default:
		n.last += n.step
	}
	return n.name(n.last), n.last
}

// name is the name of a number.
func (n *namer) name(id int64) string {
	rest := id % int64(n.wrap)
	if rest < 0 {
		rest = -rest
	}
	return n.prefix + strings.ToLower(strconv.FormatInt(rest, n.radix))
}

// nameOf is the name and the number of a record, given its stream and event. It is
// the same in every list and trace of a run.
func (n *namer) nameOf(stream, event int64) (name string, id int64) {
	if n.kind != "random" {
		id = n.start + n.step*(event+1)
		if n.kind == "desc" {
			id = n.start - n.step*(event+1)
		}
		if stream == 0 {
			return n.name(id), id
		}
		return n.name(id) + "." + strconv.FormatInt(stream, 10), id
	}
	x := uint64(n.start) + uint64(stream+1)*0x9e3779b97f4a7c15 + uint64(event+1)*0xbf58476d1ce4e5b9
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	id = int64((x ^ x>>31) >> 1)
	return n.name(id), id
}
