package host

import (
	"testing"

	"carronade/test/testkit/assert"
)

func TestParseStat(t *testing.T) {
	const tail = " S 7 42 42 0 -1 4194560 100 200 6 0 11 22 33 44 20 0 5 0 987 1000000 321 18446744073709551615 1 1"
	for _, test := range []struct {
		name, line string
		want       procStat
		ok         bool
	}{
		{"plain", "42 (srv)" + tail, procStat{'S', 7, 5, 6, 11, 22, 33, 44, 987, 1000000, 321}, true},
		{"a name with parentheses and blanks", "42 (a) R 1 (b\n)" + tail, procStat{'S', 7, 5, 6, 11, 22, 33, 44, 987, 1000000, 321}, true},
		{"cut", "42 (srv) S 7 42", procStat{}, false},
		{"no name", "42 srv S 7", procStat{}, false},
		{"nothing", "", procStat{}, false},
		{"ends in the name", "42 (srv)", procStat{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := parseStat([]byte(test.line))
			assert.True(t, ok == test.ok && (!ok || got == test.want), "got %+v, %v, want %+v, %v", got, ok, test.want, test.ok)
		})
	}
}

func TestInterfaces(t *testing.T) {
	const dev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:   5000    9 0 0 0 0 0 0 5000 9 0 0 0 0 0 0
  eth0: 1000 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0
  eth1:7 2 0 0 0 0 0 0 8 4 0 0 0 0 0 0
`
	in, out, lo := interfaces([]byte(dev))
	assert.True(t, in == 1007 && out == 308 && lo == 5000, "got %d received, %d sent, %d over loopback, want 1007, 308, 5000", in, out, lo)
}

func FuzzProc(f *testing.F) {
	f.Add([]byte("42 (srv) S 7 42 42 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 5 0 987 1000000 321"))
	f.Add([]byte("eth0: 1 2 3\n"))
	f.Add([]byte("some avg10=0.00 avg60=0.35 avg300=3.48 total=5051197195\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		parseStat(b)
		interfaces(b)
		numberAfter(b, "rchar:")
		lastNumber(b)
		pressure(b)
		var v hostCounters
		v.parseCPU(b)
		v.parseDisks(b, [][]byte{[]byte("sda")})
	})
}
