//go:build linux

package system

import (
	"net/http"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A system on another machine has its revision and its own metrics; nothing is started, waited for or ended.
func TestElsewhere(t *testing.T) {
	vars := testkit.HTTP(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"active": 5}`)) })
	// The target's address never answers, and nothing waits for it.
	s := assert.Value(Start(t.Context(), Spec{Vars: vars.URL + "/debug/vars", Listen: []string{free(t)}, ReadyWithin: time.Hour}))(t)
	got, err := s.Figures(t.Context())
	v, ok := figure(got, "active")
	assert.True(t, err == nil && ok && v == 5, "got %v, %v, want its metric", got, err)
	assert.OK(t, s.Stop())
	select {
	case <-s.Died():
		t.Error("Died is closed for a system that is not watched")
	default:
	}
}

// A system without a repository has the revision that the user gives.
func TestRevisionInWords(t *testing.T) {
	s := assert.Value(Start(t.Context(), Spec{Revision: "4.1.0-rc2", Listen: []string{free(t)}}))(t)
	defer s.Stop()
	f := s.Facts()
	assert.True(t, f["revision"] == "4.1.0-rc2" && f["revision_date"] == nil && f["branch"] == nil, "the facts are %v", f)
}
