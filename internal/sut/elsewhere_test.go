//go:build linux

package sut

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Of a system that is not on this machine there is its revision, and what it
// tells itself; nothing is started, waited for or ended.
func TestElsewhere(t *testing.T) {
	vars := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"active": 5}`)) }))
	defer vars.Close()
	began := time.Now()
	s, err := Start(t.Context(), Spec{Vars: vars.URL + "/debug/vars", Listen: []string{free(t)}})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v: the target's address is not its to wait for", took)
	}
	got, err := s.Figures(t.Context())
	if v, ok := figure(got, "active"); err != nil || !ok || v != 5 {
		t.Errorf("got %v, %v, want what it tells", got, err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	select {
	case <-s.Died():
		t.Error("what is not watched is said to have ended")
	default:
	}
}
