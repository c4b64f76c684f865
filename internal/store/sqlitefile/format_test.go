package sqlitefile

import (
	"path/filepath"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

var recipes = Format{ID: 7, Patience: 10 * time.Second, Steps: []string{"CREATE TABLE recipes (name TEXT) STRICT"}}

// A file that another process creates at the same moment is never taken for a foreign one.
func TestCreatedMeanwhile(t *testing.T) {
	for range testkit.Cases(20, 4) {
		path := filepath.Join(t.TempDir(), "recipes.db")
		a := assert.Value(recipes.Connect(path, "_pragma=journal_mode(WAL)"))(t)
		defer a.Close()
		if err := recipes.CheckOwner(t.Context(), a); err != nil { // the file exists now, and is empty
			t.Fatal(err)
		}
		b := assert.Value(recipes.Connect(path))(t)
		defer b.Close()
		migrated := make(chan error, 1)
		go func() { migrated <- recipes.Migrate(t.Context(), a) }()
		for done := false; !done; {
			select {
			case err := <-migrated:
				assert.OK(t, err)
				done = true
			default:
			}
			assert.OK(t, recipes.CheckOwner(t.Context(), b))
		}
	}
}
