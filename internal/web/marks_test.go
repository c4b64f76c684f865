package web

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestMarks: a run is marked by requests with the token, while it takes marks.
func TestMarks(t *testing.T) {
	s, err := Listen(Loopback, NewHub())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	base, token, _ := strings.Cut(s.URL(), "/#token=")
	var got []string
	end := s.TakeMarks("run1", func(kind, name string, from, to time.Time) (float64, float64, error) {
		if to.Before(from) || time.Since(from) > time.Minute {
			t.Errorf("it was between %v and %v", from, to)
		}
		if kind == "broken" {
			return 0, 0, errors.New("not a kind")
		}
		got = append(got, kind+" "+name)
		return 12.5, 0.25, nil
	})
	post := func(run, token, kind, origin, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/runs/"+run+"/marks", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", kind)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	const json, fault = "application/json", `{"kind": "fault", "name": " the plug "}`
	for _, tt := range []struct {
		name, run, token, kind, origin, body string
		code                                 int
		want                                 string
	}{
		{"a fault", "run1", token, json, "", fault, 200, `{"at_s":12.5,"bound_s":0.25}`},
		{"of the page itself", "run1", token, json, base, fault, 200, `{"at_s":12.5,"bound_s":0.25}`},
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
			if code != tt.code || !strings.Contains(text, tt.want) {
				t.Errorf("got %d %q, want %d %q", code, text, tt.code, tt.want)
			}
		})
	}
	if want := "fault the plug, fault the plug"; strings.Join(got, ", ") != want {
		t.Errorf("the marks are %q, want %q", got, want)
	}
	end()
	if code, _ := post("run1", token, json, "", fault); code != 404 {
		t.Errorf("a run that has ended: %d", code)
	}
	(*Server)(nil).TakeMarks("x", nil)()
}
