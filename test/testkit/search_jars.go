package testkit

import (
	"context"
	"time"
)

// fetch returns the directory of a release's jars, about 90 MB, which the first call
// on a machine fetches.
func (r *release) fetch() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	b := Bundle{Name: r.name, Project: r.project()}
	for _, jar := range r.jars {
		b.Needs = append(b.Needs, jarFile(jar))
	}
	return b.Fetch(ctx)
}
