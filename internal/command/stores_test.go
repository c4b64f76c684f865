package command

import (
	"context"
	"errors"
	"testing"

	"github.com/spf13/pflag"

	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// closing is a store that counts how many times it is closed.
type closing struct {
	store.Store
	closed int
	err    error
}

func (c *closing) Close() error { c.closed++; return c.err }

// A job gets the store that --store names. The store is closed also if the job
// fails, and both errors are returned.
func TestOpeningDo(t *testing.T) {
	failed, broken, shut := errors.New("the job failed"), errors.New("cannot be opened"), errors.New("does not close")
	for _, tt := range []struct {
		name             string
		open, job, close error
		want             []error
		closed           int
	}{
		{name: "no error", closed: 1},
		{name: "no store", open: broken, want: []error{broken}},
		{name: "the job fails", job: failed, want: []error{failed}, closed: 1},
		{name: "closing fails", close: shut, want: []error{shut}, closed: 1},
		{name: "both fail", job: failed, close: shut, want: []error{failed, shut}, closed: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &closing{err: tt.close}
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			open := Stores(func(_ context.Context, place string) (store.Store, error) {
				assert.Equal(t, place, "here.db", "place")
				return s, tt.open
			}).Bind(fs)
			assert.OK(t, fs.Parse([]string{"--store", "here.db"}))
			ran := false
			err := open.Do(t.Context(), func(got store.Store) error {
				ran = true
				assert.True(t, got == store.Store(s) && s.closed <= 0, "the job got %v, closed %d times", got, s.closed)
				return tt.job
			})
			for _, want := range tt.want {
				assert.True(t, errors.Is(err, want), "got %v, want %v", err, want)
			}
			assert.True(t, (len(tt.want) > 0 || err == nil) && s.closed == tt.closed && ran != (tt.open != nil),
				"got %v, closed %d times, ran %v; want it closed %d times", err, s.closed, ran, tt.closed)
		})
	}
}
