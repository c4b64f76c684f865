package null

import (
	"testing"

	"carronade/target"
)

// TestPool: the batches of a pool take what they say, and no more, however
// small a batch is; and a batch never has more events than its batch.
func TestPool(t *testing.T) {
	for _, tt := range []struct {
		name     string
		perBatch int
		size     string
	}{
		{"as many as fit", 0, "100"},
		{"one event a batch", 1, "100"},
		{"of many sizes", 30, "10-3000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := target.Values{}
			for _, o := range (Kind{}).Options() {
				if o.Default != "" {
					v[o.Name] = []string{o.Default}
				}
			}
			v["size"], v["batch-size"] = []string{tt.size}, []string{"32KiB"}
			opened, err := Kind{}.Open(t.Context(), target.Spec{Options: v, Seed: 1, BatchEvents: tt.perBatch})
			if err != nil {
				t.Fatal(err)
			}
			l := opened.(*session).lanes[0]
			total := 0
			for i := range l.encoder.templates {
				d := &l.encoder.templates[i]
				total += cap(d.batch)
				if room := l.Room(0, 0); tt.perBatch > 0 && room > d.events() {
					t.Fatalf("room for %d events, and a batch of %d", room, d.events())
				}
			}
			if most := 3 << 19; total > most {
				t.Errorf("a pool of 1 MiB holds %d bytes in %d batches, want %d at most", total, len(l.encoder.templates), most)
			}
		})
	}
}
