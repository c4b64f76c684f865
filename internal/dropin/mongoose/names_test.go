package mongoose

import (
	"math"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func stepOf(t *testing.T, args ...string) *step {
	t.Helper()
	v := assert.Value(parse(args, t.Logf))(t)
	s := assert.Value(newStep(v, false, "", began, t.Logf))(t)
	return s
}

// Names are those of mongoose: the first is the one after the seed, in the radix, not padded.
// Those at random from the seed 1, those from 0 and those down from 10 are the expectations of
// mongoose's own tests.
func TestNames(t *testing.T) {
	for _, tt := range testkit.Table[struct {
		Args string
		Want string
	}](t, "testdata/names.yaml") {
		var args []string
		for o := range strings.FieldsSeq(tt.Args) {
			args = append(args, "--item-naming-"+o)
		}
		s := stepOf(t, args...)
		n, again := s.namer(), s.namer()
		var got []string
		want := strings.Fields(tt.Want)
		for i := range want {
			name, id := n.next()
			if at, of := again.appendOf(nil, 0, uint64(i)); string(at) != name || of != id {
				t.Errorf("%s: record %d is %s (%d), and name %d %s (%d)", tt.Args, i, at, of, i, name, id)
			}
			got = append(got, name)
		}
		assert.Equal(t, strings.Join(got, " "), tt.Want, "%s", tt.Args)
	}
	// Without a seed, two steps have different names.
	a, _ := stepOf(t).namer().next()
	b := stepOf(t)
	b.namingSeed++
	c, _ := b.namer().next()
	assert.True(t, a != c && matches(`^[0-9a-z]{1,12}$`, a), "got %s and %s", a, c)
}

// Records of several streams are items in the order of the run.
func TestNamesOfStreams(t *testing.T) {
	s := stepOf(t, "--item-naming-type=serial", "--item-naming-seed=-1", "--item-naming-radix=10")
	n := s.namer()
	n.divided(s.streams(map[string]any{"topic": map[string]any{"partitions": 3}}))
	for _, tt := range []struct {
		stream int32
		event  uint64
		want   int64
	}{{0, 0, 0}, {2, 0, 2}, {0, 1, 3}, {1, 4, 13}} {
		_, id := n.appendOf(nil, tt.stream, tt.event)
		assert.Equal(t, id, tt.want, "item of event %d of stream %d", tt.event, tt.stream)
	}
}

// The numbers are less than the radix to the power of the length, as a real number.
func TestWrap(t *testing.T) {
	for _, tt := range []struct{ radix, length, want int64 }{
		{36, 12, 4738381338321616896},
		{36, 13, math.MaxInt64},
		{10, 2, 100},
		{2, 63, math.MaxInt64},
		{2, 62, 1 << 62},
		{35, 12, 3379220508056640512}, // 35^12 is 3379220508056640625, which no real number is
	} {
		assert.Equal(t, wrapOf(tt.radix, tt.length), tt.want, "%d^%d", tt.radix, tt.length)
	}
}

// Wrong options for names are errors.
func TestNamesErrors(t *testing.T) {
	for arg, want := range map[string]string{
		"--item-naming-length=0":               "is not from 1 to 64",
		"--item-naming-radix=37":               "is not from 2 to 36",
		"--item-naming-type=other":             "unknown type",
		"--item-naming-seed=abc":               "not a 64-bit integer",
		"--item-naming-prefix=${foo()}":        "--item-naming-prefix: at",
		"--item-naming-prefix=${time:nanos()}": "current time",
	} {
		v := assert.Value(parse([]string{arg, "--storage-driver-record-key-enabled"}, t.Logf))(t)
		_, err := newStep(v, false, "", began, t.Logf)
		assert.ErrorHas(t, err, want, "%s", arg)
	}
}

// Sizes, and numbers in columns.
func TestNumbers(t *testing.T) {
	for n, want := range map[uint64]string{0: "0B", 1023: "1023B", 1024: "1KB", 2000000: "1.907MB", 10 << 20: "10MB", 102400 + 512: "100.5KB", 20<<30 + 1<<29: "20.50GB"} {
		assert.Equal(t, bytesText(n), want, "%d bytes", n)
	}
	for _, tt := range []struct {
		x    float64
		n    int
		want string
	}{{1234.5678, 8, "1234.567"}, {12345678.9, 8, "12345678"}, {0.5, 7, "0.5"}, {1e-9, 7, "0"}, {4.81394942941553e-4, 7, "4.81E-4"}, {1.5e-4, 7, "1.5E-4"}, {1.23456789e-5, 10, "1.23456E-5"}, {9.99999e-4, 8, "9.999E-4"}, {123456789, 8, "1.2345E8"}, {123456789012, 8, "1.234E11"}, {1e7, 7, "1.0E7"}, {31365.05, 8, "31365.05"}} {
		assert.Equal(t, fixed(tt.x, tt.n), tt.want, "%g in %d", tt.x, tt.n)
	}
}

// A count of failures that is too long for its column does not look like another
// number.
func TestManyFailures(t *testing.T) {
	for _, tt := range []struct {
		n             uint64
		right, strict string
	}{{0, "     0", "     0"}, {999_999, "999999", "999999"}, {1_000_000, "1.00E6", "000000"}, {1_234_567, "1.23E6", "234567"}, {12_345_678_901, "1.2E10", "678901"}} {
		assert.Equal(t, left((&step{}).failed(tt.n), 6), tt.right, "%d", tt.n)
		assert.Equal(t, left((&step{strict: true}).failed(tt.n), 6), tt.strict, "with --strict %d", tt.n)
		var b strings.Builder
		(&table{w: &b, s: &step{headerEach: 20}}).row(&metrics{fail: tt.n})
		assert.Has(t, b.String(), "|           0|"+tt.right+"|")
	}
}
