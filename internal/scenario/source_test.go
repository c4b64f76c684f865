package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// A script is read whole, or there is an error without its path.
func TestReadSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.js")
	for _, tt := range []struct {
		name string
		size int // of the file; below 0: there is none
		want error
	}{
		{"the largest", MostSource, nil},
		{"a larger one", MostSource + 1, ErrLarge},
		{"none", -1, syscall.ENOENT},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			source := strings.Repeat("x", max(tt.size, 0))
			if tt.size >= 0 {
				assert.OK(t, os.WriteFile(path, []byte(source), 0o600))
			}
			got, err := ReadSource(path)
			if !errors.Is(err, tt.want) || err == nil && got != source || err != nil && (got != "" || strings.Contains(err.Error(), path)) {
				t.Errorf("%d bytes, %v, want %v", len(got), err, tt.want)
			}
		})
	}
}

// childEnv marks the processes that run the scripts of these tests.
const childEnv = "SCENARIO_TEST_CHILD"

// languages are those of these tests, besides our own API.
var languages = map[string]Language{}

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(Main(os.Stdin, os.Stdout, languages))
	}
	_ = os.Setenv(childEnv, "1") // of the children
	os.Exit(m.Run())
}

// What is written is read again, one line at a time.
func TestLines(t *testing.T) {
	var b bytes.Buffer
	l := newLines(&b, &b)
	want := []request{
		{Do: doStart, Step: &Step{Kind: RunStep, Name: "a\nb", At: "a.js:1:2", Target: "x", Options: []Option{{Name: "rate", Values: []string{"<1>"}}}, Parts: []Part{{Target: "y"}}}},
		{Do: doAwait, Numbers: []int{1, 2}, Limit: -1},
		{Do: doEnd, Fault: &Fault{At: "a.js:3:4", Text: "no", Hint: strings.Repeat("long ", 1e5)}},
	}
	for i := range want {
		assert.OK(t, l.write(&want[i]))
	}
	for i := range want {
		var got request
		assert.OK(t, l.read(&got))
		assert.Same(t, got, want[i], "line %d", i+1)
	}
	err := l.read(&request{})
	assert.True(t, errors.Is(err, io.EOF), "got %v at the end", err)
}

func TestBadLines(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
	}{
		{"no JSON", "panic: no\n", "read a line of the script's process: invalid character"},
		{"a line without end", `{"do":`, "unexpected EOF"},
		{"another type", "[]\n", "cannot unmarshal"},
		{"a line that is too long", strings.Repeat("x", mostLine+1) + "\n", errLongLine.Error()},
	} {
		assert.ErrorHas(t, newLines(strings.NewReader(tt.text), nil).read(&request{}), tt.want, "%s", tt.name)
	}
	err := newLines(nil, io.Discard).write(strings.Repeat("x", mostLine))
	assert.True(t, errors.Is(err, errLongLine), "got %v for a long value", err)
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"do":"start","step":{"kind":"run","at":"a"}}` + "\n"))
	f.Add([]byte("{}\n\n{\"limit\":1e9}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := newLines(bytes.NewReader(text), nil)
		for range 10 {
			var r request
			if l.read(&r) != nil {
				return
			}
			assert.Value(json.Marshal(&r))(t)
		}
	})
}

// The clock of a script adds up what it computes, and nothing else.
func TestClock(t *testing.T) {
	c := newClock()
	assert.Equal(t, c.spent(), 0, "time spent before the script began")
	c.begin()
	for c.spent() < time.Millisecond {
	}
	c.end()
	before := c.spent()
	if c.end(); before < time.Millisecond || c.spent() != before {
		t.Errorf("got %v and then %v", before, c.spent())
	}
	if c.reset(); c.spent() != 0 {
		t.Errorf("got %v after a reset", c.spent())
	}
}

func TestSaid(t *testing.T) {
	s := &said{}
	for range 3 {
		n, err := s.Write(bytes.Repeat([]byte("x"), mostSaid-1))
		assert.Must(t, n == mostSaid-1 && err == nil, "%v %v", n, err)
	}
	assert.Equal(t, len(s.String()), mostSaid, "kept bytes")
}
