//go:build linux

package sut

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"carronade/internal/testkit/assert"
)

// A system on another machine has its revision and its own metrics; nothing is
// started, waited for or ended.
func TestElsewhere(t *testing.T) {
	vars := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"active": 5}`)) }))
	defer vars.Close()
	began := time.Now()
	s, err := Start(t.Context(), Spec{Vars: vars.URL + "/debug/vars", Listen: []string{free(t)}})
	assert.OK(t, err)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v: it must not wait for the target's address", took)
	}
	got, err := s.Figures(t.Context())
	if v, ok := figure(got, "active"); err != nil || !ok || v != 5 {
		t.Errorf("got %v, %v, want its metric", got, err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	select {
	case <-s.Died():
		t.Error("Died is closed for a system that is not watched")
	default:
	}
}

// A system without a repository has the revision that the user gives.
func TestRevisionInWords(t *testing.T) {
	s, err := Start(t.Context(), Spec{Revision: "4.1.0-rc2", Listen: []string{free(t)}})
	assert.OK(t, err)
	defer s.Stop()
	if f := s.Facts(); f["revision"] != "4.1.0-rc2" || f["revision_date"] != nil || f["branch"] != nil {
		t.Errorf("the facts are %v", f)
	}
}
