package mongoose

import "testing"

// Names are those of mongoose: the first is the one after the seed, in the radix,
// not padded.
func TestNames(t *testing.T) {
	name := func(args ...string) string {
		v, err := parse(args, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		n := newNamer(v, 7)
		a, _ := n.next()
		b, _ := n.next()
		return a + " " + b
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--item-naming-type=serial"}, "0 1"},
		{[]string{"--item-naming-type=serial", "--item-naming-seed=34", "--item-naming-prefix=t-"}, "t-z t-10"},
		{[]string{"--item-naming-type=desc", "--item-naming-seed=3"}, "2 1"},
		{[]string{"--item-naming-type=serial", "--item-naming-seed=98", "--item-naming-radix=10", "--item-naming-length=2"}, "99 0"},
	} {
		if got := name(tt.args...); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.args, got, tt.want)
		}
	}
	if a, b := name("--item-naming-seed=1"), name("--item-naming-seed=2"); a == b || a != name("--item-naming-seed=1") || !matches(`^[0-9a-z]{1,12} [0-9a-z]{1,12}$`, a) {
		t.Errorf("got %s and %s", a, b)
	}
}
