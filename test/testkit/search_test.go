package testkit

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"carronade/test/testkit/assert"
)

func TestMain(m *testing.M) { os.Exit(SearchMain(m)) }

func TestSharedSearch(t *testing.T) {
	n := SharedSearch(t)
	index := SearchIndex(t, "apm")
	n.Add(t, index, 7000)
	res, err := http.Get(n.URL + "/" + index + "/_count")
	assert.OK(t, err)
	defer res.Body.Close()
	var got struct{ Count int }
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || got.Count != 7000 {
		t.Errorf("got %d documents, %v; want 7000", got.Count, err)
	}
	if other := SearchIndex(t, "apm"); other == index {
		t.Errorf("two indices named %s", index)
	}
}
