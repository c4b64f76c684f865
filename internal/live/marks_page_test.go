package live

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestMarks: a run is marked by requests with the token, while it takes marks.
func TestMarks(t *testing.T) {
	t.Parallel()
	s := assert.Value(OpenPage("127.0.0.1:0", NewHub()))(t)
	defer s.Close()
	base, token, _ := strings.Cut(s.URL(), "/#token=")
	var got []string
	end := s.TakeMarks("run1", func(kind, name string, from, to time.Time) (float64, float64, error) {
		waited := time.Duration(0)
		if kind == "heal" {
			waited = mostWaited
		}
		// The bound is the round trip alone: what the sender waited is known.
		length := to.Sub(from)
		assert.True(t, length >= 0 && length <= time.Minute, "it was between %v and %v", from, to)
		ago := time.Since(to)
		assert.True(t, ago >= waited && ago <= waited+time.Minute, "it was at %v, %v ago, want %v", to, ago, waited)
		if kind == "broken" {
			return 0, 0, errors.New("not a kind")
		}
		got = append(got, kind+" "+name)
		return 12.5, 0.25, nil
	})
	post := func(run, token, kind, origin, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/runs/"+run+"/marks", strings.NewReader(body))
		assert.OK(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", kind)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		res, err := http.DefaultClient.Do(r)
		assert.OK(t, err)
		defer res.Body.Close()
		text := assert.Value(io.ReadAll(res.Body))(t)
		return res.StatusCode, string(text)
	}
	const json, fault = "application/json", `{"kind": "fault", "name": " the plug "}`
	for _, tt := range []struct {
		name, run, token, kind, origin, body string
		code                                 int
		want                                 string
	}{
		{"a fault", "run1", token, json, "", fault, 200, `{"at_s":12.5,"bound_s":0.25,"round_trip_s":`},
		{"of the page itself", "run1", token, json, base, fault, 200, `{"at_s":12.5,"bound_s":0.25,"round_trip_s":`},
		{"that waited", "run1", token, json, "", `{"kind": "heal", "name": "the plug", "waited_s": 3600}`, 200, `{"at_s":12.5,"bound_s":0.25`},
		{"to come", "run1", token, json, "", `{"kind": "heal", "name": "the plug", "waited_s": -1}`, 400, "waited_s is from 0 to 3600 s"},
		{"long ago", "run1", token, json, "", `{"kind": "heal", "name": "the plug", "waited_s": 3601}`, 400, "waited_s is from 0 to 3600 s"},
		{"no token", "run1", "", json, "", fault, 401, "the token is missing or wrong"},
		{"another token", "run1", "0" + token, json, "", fault, 401, "the token is missing or wrong"},
		{"another page", "run1", token, json, "http://elsewhere.invalid", fault, 403, "another page may not do this"},
		{"another run", "run2", token, json, "", fault, 404, "start it with --marks"},
		{"no JSON", "run1", token, json, "", "the plug", 400, "the request must be JSON"},
		{"another type", "run1", token, "text/plain", "", fault, 400, "the request must be JSON"},
		{"much", "run1", token, json, "", `{"name": "` + strings.Repeat("x", mostMark) + `"}`, 400, "the request must be JSON"},
		{"no kind", "run1", token, json, "", `{"kind": "broken", "name": "x"}`, 400, "not a kind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, text := post(tt.run, tt.token, tt.kind, tt.origin, tt.body)
			assert.True(t, code == tt.code && strings.Contains(text, tt.want), "got %d %q, want %d %q", code, text, tt.code, tt.want)
		})
	}
	want := "fault the plug, fault the plug, heal the plug"
	assert.True(t, strings.Join(got, ", ") == want, "the marks are %q, want %q", got, want)
	for i := len(got); i < mostAddress; i++ {
		code, text := post("run1", token, json, "", fault)
		assert.Must(t, code == 200, "mark %d: got %d %q", i+1, code, text)
		post("run1", token, json, "", `{"kind": "broken", "name": "x"}`) // is none, so it does not count
	}
	if code, text := post("run1", token, json, "", fault); code != 429 || !strings.Contains(text, "the run takes at most 16 marks over HTTP from one address, which it has from 127.0.0.1") {
		t.Errorf("more marks than one address may make: got %d %q", code, text)
	}
	end()
	code, _ := post("run1", token, json, "", fault)
	assert.Equal(t, code, 404, "a run that has ended")
	(*Page)(nil).TakeMarks("x", nil)()
}

// TestMarksOfAll: all addresses together have a limit, so that the owner of the run has room.
func TestMarksOfAll(t *testing.T) {
	t.Parallel()
	m, r := new(marks), &marked{from: map[string]int{}}
	for i := range mostRemote {
		assert.OK(t, m.reserve(r, string(rune('a'+i%4))))
	}
	assert.ErrorHas(t, m.reserve(r, "x"), "takes at most 32 marks over HTTP")
	m.release(r, "a")
	assert.OK(t, m.reserve(r, "x"))
}
