package standin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"github.com/spf13/pflag"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	var (
		size  int64
		pause time.Duration
		one   int
		many  []int
	)
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.Var(SizeValue(&size), "size", "")
	fs.Var(DurationValue(&pause), "pause", "")
	fs.Var(&Value[int]{&one, strconv.Atoi, strconv.Itoa, "number"}, "one", "")
	fs.Var(&List[int]{&many, strconv.Atoi, strconv.Itoa, "number"}, "many", "")
	shows := func(want string) {
		t.Helper()
		got := ""
		fs.VisitAll(func(f *pflag.Flag) { got += fmt.Sprintf("%s %s %q, ", f.Name, f.Value.Type(), f.Value) })
		assert.Equal(t, got, want)
	}
	shows(`many number "", one number "", pause duration "", size size "", `)
	assert.OK(t, fs.Parse([]string{"--size", "2KiB", "--pause", "5ms", "--one", "7", "--many", "1", "--many", "2"}))
	assert.True(t, size == 2048 && pause == 5*time.Millisecond && one == 7 && len(many) == 2,
		"got %d, %v, %d and %v", size, pause, one, many)
	shows(`many number "1,2", one number "7", pause duration "5ms", size size "2KiB", `)
	for _, bad := range []string{"--one=x", "--many=x", "--size=x", "--pause=1"} {
		assert.True(t, fs.Parse([]string{bad}) != nil, "%s is accepted, want an error", bad)
	}
	assert.True(t, one == 7 && len(many) == 2 && size == 2048, "a refused flag has changed a value")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none.pem")
	for _, test := range []struct {
		name string
		tls  TLS
		want string
	}{
		{"none", TLS{}, ""},
		{"half", TLS{Cert: none}, "both a certificate and its key"},
		{"an authority alone", TLS{ClientCA: none}, "needs TLS"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.tls.Check()
			assert.True(t, (err == nil) == (test.want == "") && (err == nil || strings.Contains(err.Error(), test.want)),
				"got %v, want %q", err, test.want)
		})
	}
	c, err := (TLS{}).Config()
	assert.True(t, c == nil && err == nil, "got %v, %v; want no TLS", c, err)
	_, err = (TLS{Cert: none, Key: none}).Config()
	assert.True(t, errors.Is(err, os.ErrNotExist), "got %v, want %v", err, os.ErrNotExist)
}
