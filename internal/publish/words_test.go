package publish

import (
	"context"
	"testing"
)

// Others' bytes need not be text: a page of them is one all the same.
func TestLabelsThatAreNoText(t *testing.T) {
	h, err := Open(Options{MetricsAddr: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	h.Begin(Run{ID: "k3f9z0ab", Labels: map[string]string{"team": "a\xff"}})
	h.Show(snapshot(1))
	if got := scrape(t, h.Addr(), "text/plain"); got["carronade_run_info"] == nil {
		t.Error("the run is not told of")
	}
}
