package franz

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/test/testkit/assert"
)

// watched returns a traffic that counts the losses that it reports.
func watched(reported *int) *traffic {
	var tr traffic
	tr.init(&cluster.Config{Happened: func(string, time.Time, time.Duration) { *reported++ }})
	return &tr
}

// checkNoneLost checks that no connection was lost, how many are open, and that the others are forgotten.
func checkNoneLost(t *testing.T, tr *traffic, reported, open int) {
	t.Helper()
	n := tr.lost.Load()
	assert.True(t, n == 0 && reported == 0, "%d connections are lost, and %d reported; want none", n, reported)
	assert.Equal(t, tr.connections(), open, "connections open")
	tr.mu.Lock()
	defer tr.mu.Unlock()
	assert.Equal(t, len(tr.early), 0, "connections without a beginning")
}

// A connection that was never open, or that was not to a broker yet, is not lost, and does not stay open.
func TestConnectionsThatAreNotLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		broker int32
		hooks  []string
	}{
		{"it ends before its beginning is reported", 1, []string{"end", "begin"}},
		{"the broker cannot be reached", 1, []string{"fail"}},
		{"it is to a server whose id is not known", -1, []string{"begin", "end"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var reported int
			tr, meta, nc := watched(&reported), kgo.BrokerMetadata{NodeID: tt.broker}, &scriptedConn{}
			for _, hook := range tt.hooks {
				switch hook {
				case "begin":
					tr.OnBrokerConnect(meta, 0, nc, nil)
				case "fail":
					tr.OnBrokerConnect(meta, 0, nil, errors.New("refused"))
				case "end":
					tr.OnBrokerDisconnect(meta, nc)
				}
			}
			checkNoneLost(t, tr, reported, 0)
		})
	}
}

// The client reports the end of a connection that a broker closes at once before it reports that it failed.
func TestConnectionClosedAtOnce(t *testing.T) {
	t.Parallel()
	c := assert.Value(kfake.NewCluster(kfake.NumBrokers(1)))(t)
	defer c.Close()
	var reported int
	tr := watched(&reported)
	client := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.WithHooks(tr)))(t)
	defer client.Close()
	assert.OK(t, client.Ping(t.Context())) // on a connection that stays open
	c.ControlKey(int16(kmsg.ApiVersions), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, errors.New("the test closes this connection"), true
	})
	_, err := client.Broker(0).Request(t.Context(), kmsg.NewPtrMetadataRequest())
	assert.Must(t, err != nil, "the broker answered, want an error")
	checkNoneLost(t, tr, reported, 1)
}
