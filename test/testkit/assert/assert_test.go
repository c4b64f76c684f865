package assert

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// recorded is a test of which only the failures are looked at.
type recorded struct {
	testing.TB
	failure string
	ended   bool
}

func (r *recorded) Helper()                             {}
func (r *recorded) Errorf(format string, values ...any) { r.failure = fmt.Sprintf(format, values...) }

func (r *recorded) Fatalf(format string, values ...any) {
	r.failure, r.ended = fmt.Sprintf(format, values...), true
	runtime.Goexit()
}

// Each comparison fails with what was compared and both values, and only those that say so end the test.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t testing.TB)
		want string // ""; it holds
		ends bool
	}{
		{"no error", func(t testing.TB) { OK(t, nil) }, "", false},
		{"an error", func(t testing.TB) { OK(t, errors.New("full"), "write %d", 7) }, "write 7: full", true},
		{"a value", func(t testing.TB) { Equal(t, Value(os.Hostname())(t) != "", true) }, "", false},
		{"no value", func(t testing.TB) { Value(os.ReadFile("none"))(t, "the list") }, "the list: open none", true},
		{"equal", func(t testing.TB) { Equal(t, 2, 2) }, "", false},
		{"not equal", func(t testing.TB) { Equal(t, 2, 3, "events") }, "events: got 2, want 3", false},
		{"other texts", func(t testing.TB) { Equal(t, "a", "b") }, `got "a", want "b"`, false},
		{"other lines", func(t testing.TB) { Equal(t, "a\nb", "a\nc") }, "(-want +got)", false},
		{"the same", func(t testing.TB) { Same(t, []int{1}, []int{1}) }, "", false},
		{"not the same", func(t testing.TB) { Same(t, []int{1}, []int{2}, "offsets") }, "offsets: (-want +got)", false},
		{"the error", func(t testing.TB) { ErrorHas(t, errors.New("no room left"), "room") }, "", false},
		{"another error", func(t testing.TB) { ErrorHas(t, errors.New("left"), "room") }, `got the error left, want one with "room"`, false},
		{"none", func(t testing.TB) { ErrorHas(t, nil, "room") }, `got the error <nil>`, false},
		{"each part", func(t testing.TB) { Has(t, "no room left", "no", "room") }, "", false},
		{"a part that is missing", func(t testing.TB) { Has(t, "no room left", "no", "space") }, "no \"space\" in\nno room left", false},
		{"true", func(t testing.TB) { True(t, true, "%d", 1) }, "", false},
		{"false", func(t testing.TB) { True(t, false, "it has %d", 1) }, "it has 1", false},
		{"must", func(t testing.TB) { Must(t, false, "it has %d", 1) }, "it has 1", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorded{}
			done := make(chan struct{})
			go func() { defer close(done); tt.do(r) }()
			<-done
			if !strings.HasPrefix(r.failure, tt.want) || (tt.want == "") != (r.failure == "") || r.ended != tt.ends {
				t.Errorf("got %q, ended: %v; want %q, %v", r.failure, r.ended, tt.want, tt.ends)
			}
		})
	}
}
