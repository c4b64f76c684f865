package apm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	standin "carronade/internal/standin/apm"
	"carronade/internal/testkit/assert"
	"carronade/target"
)

func findingOf(fs []target.Finding, check string) target.Finding {
	i := slices.IndexFunc(fs, func(f target.Finding) bool { return strings.HasPrefix(f.Check, check) })
	if i < 0 {
		return target.Finding{Found: "no such finding"}
	}
	return fs[i]
}

// apmServer answers as a server of that version does.
func apmServer(t *testing.T, version string, ready bool) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			fmt.Fprintf(w, `{"build_sha":"abc","publish_ready":%t,"version":%q}`, ready, version)
			return
		}
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestInspect(t *testing.T) {
	s := startStandin(t, standin.Options{})
	old, ready := apmServer(t, "8.19.0", false), apmServer(t, "9.2.0", true)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/_cluster/health" {
			io.WriteString(w, `{"status":"red","number_of_nodes":3}`)
			return
		}
		io.WriteString(w, `{"cluster_name":"c","version":{"number":"9.2.0"}}`)
	}))
	t.Cleanup(store.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	closed := ln.Addr().String()
	ln.Close()
	for _, tt := range []struct {
		name    string
		target  string
		options map[string]string
		check   string
		level   target.Level
		want    string
	}{
		{"a stand-in", s.Addr(), nil, "version", target.LevelOK, "stand-in"},
		{"an address", s.Addr(), nil, "address", target.LevelOK, "accepts connections"},
		{"no login", s.Addr(), nil, "login", target.LevelOK, "without a login"},
		{"the clock", s.Addr(), nil, "clock", target.LevelOK, "on this machine"},
		{"a version", ready, nil, "version", target.LevelOK, "APM Server 9.2.0"},
		{"ready", ready, nil, "publish_ready", target.LevelOK, "is ready"},
		{"not ready", old, nil, "publish_ready", target.LevelWarning, "is not ready"},
		{"two versions", old + "," + ready, nil, "version", target.LevelNote, "different versions: 8.19.0, 9.2.0"},
		{"one of two is closed", ready + "," + closed, nil, "address " + closed, target.LevelError, "refused"},
		{"a red store", ready, map[string]string{"index": store.URL}, "index", target.LevelWarning, "its health is red, with 3 nodes"},
		{"no store", ready, map[string]string{"index": "http://" + closed}, "index", target.LevelError, "does not answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			in, err := Kind{}.Inspect(ctx, spec(t, "apm+http://"+tt.target, tt.options))
			assert.OK(t, err)
			f := findingOf(in.Findings, tt.check)
			if f.Level != tt.level || !strings.Contains(f.Found, tt.want) {
				t.Errorf("got %v: %s, want %v: %s", f.Level, f.Found, tt.level, tt.want)
			}
			for _, f := range in.Findings {
				assert.True(t, f.Level < target.LevelNote || f.Effect != "" && f.Mend != "", "%+v lacks its effect or what changes it", f)
			}
		})
	}
	guarded := startStandin(t, standin.Options{SecretToken: "right"})
	t.Setenv("APM_WRONG", "wrong")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	t.Cleanup(func() { silent.Close() })
	for _, tt := range []struct {
		name, target string
		options      map[string]string
		within       time.Duration
		want, hint   string
	}{
		{"a closed port", closed, nil, time.Minute, "refused", "carronade standin apm"},
		{"no login", guarded.Addr(), nil, time.Minute, "403", "--secret-token"},
		{"a wrong login", guarded.Addr(), map[string]string{"secret-token": "env:APM_WRONG"}, time.Minute, "401", "secret token"},
		{"silence", silent.Addr().String(), nil, 200 * time.Millisecond, "", "stuck"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tt.within)
			defer cancel()
			in, err := Kind{}.Inspect(ctx, spec(t, "apm+http://"+tt.target, tt.options))
			e := (*target.Error)(nil)
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(e.Hint, tt.hint) || len(in.Findings) > 0 {
				t.Errorf("got %v, want %q and the hint %q", err, tt.want, tt.hint)
			}
		})
	}
}

func TestClockFinding(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ended := began.Add(100 * time.Millisecond)
	for _, tt := range []struct {
		name, date string
		level      target.Level
		want       string
	}{
		{"equal", began.Format(http.TimeFormat), target.LevelOK, "agrees with this machine's, give or take 1 s"},
		{"a little ahead", began.Add(3 * time.Second).Format(http.TimeFormat), target.LevelNote, "3.45 s ahead of"},
		{"behind", began.Add(-10 * time.Second).Format(http.TimeFormat), target.LevelNote, "behind this machine's, give or take 550 ms"},
		{"far ahead", began.Add(time.Hour).Format(http.TimeFormat), target.LevelWarning, "ahead of this machine's"},
		{"no time", "", target.LevelUnknown, "have no time"},
		{"what is not a time", "yesterday", target.LevelUnknown, "have no time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := clockFinding("a", tt.date, began, ended)
			if f.Level != tt.level || !strings.Contains(f.Found, tt.want) {
				t.Errorf("got %v: %s, want %v: %s", f.Level, f.Found, tt.level, tt.want)
			}
		})
	}
}

func FuzzClockFinding(f *testing.F) {
	f.Add("Sun, 01 Mar 2026 12:00:00 GMT")
	f.Add("")
	f.Fuzz(func(t *testing.T, date string) {
		now := time.Unix(1_800_000_000, 0)
		if got := clockFinding("a", date, now, now.Add(time.Second)); got.Found == "" {
			t.Errorf("%q has no finding", date)
		}
	})
}
