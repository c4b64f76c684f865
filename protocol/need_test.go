package protocol_test

import (
	"errors"
	"testing"

	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// TestRoom: what does not fit is refused, with the number that takes the most, and a number that fits.
func TestRoom(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	clients := func(n int64) protocol.Need {
		return protocol.Need{Setting: "clients", Number: n, Bytes: mib / 2, Files: 1, Sizes: []protocol.NeedSize{{Setting: "pool", Bytes: mib}}}
	}
	pool := func(bytes int64) protocol.Need {
		return protocol.Need{Setting: "clients", Number: 1, Bytes: mib, Sizes: []protocol.NeedSize{{Setting: "pool", Bytes: bytes, Times: 2}}}
	}
	room := protocol.Room{Memory: 16 * gib, From: "this machine has %s free", Files: 1024, Open: 15}
	for _, tt := range []struct {
		name       string
		room       protocol.Room
		needs      []protocol.Need
		want, hint string
	}{
		{"fits", room, []protocol.Need{clients(900)}, "", ""},
		{"no limits", protocol.Room{}, []protocol.Need{clients(1 << 60)}, "", ""},
		{
			"memory",
			protocol.Room{Memory: 16 * gib, From: "a job may take %s"},
			[]protocol.Need{clients(1e6)},
			"--clients 1,000,000 takes 1.43 TiB of memory, 1.5 MiB each (its --pool), and a job may take 16 GiB", "give --clients 10000 or fewer, or smaller --pool",
		},
		{
			"memory and files", room,
			[]protocol.Need{clients(1e6)},
			"--clients 1,000,000 takes 1.43 TiB of memory, 1.5 MiB each (its --pool), and this machine has 16 GiB free", "give --clients 977 or fewer, or smaller --pool",
		},
		{
			"more than a number can count", room,
			[]protocol.Need{clients(1<<63 - 1)},
			"--clients 9,223,372,036,854,775,807 takes 4194304 TiB of memory, 1.5 MiB each (its --pool), and this machine has 16 GiB free", "give --clients 977 or fewer, or smaller --pool",
		},
		{
			"size", room,
			[]protocol.Need{pool(100 * gib)},
			"--pool 100GiB takes 200 GiB of memory, and this machine has 16 GiB free", "give --pool 8191MiB or less",
		},
		{
			"no size", room,
			[]protocol.Need{{Setting: "payload", Number: 1, Bytes: 17 * gib}},
			"--payload takes 17 GiB of memory, and this machine has 16 GiB free", "give a smaller one",
		},
		{
			"together", room,
			[]protocol.Need{{Setting: "concurrency", Number: 1000, Bytes: 6 * mib}, {Setting: "events", Number: 100, Bytes: 110 * mib}},
			"--events 100 takes 10.7 GiB of memory, 110 MiB each, and this machine has 16 GiB free", "give --events 94 or fewer",
		},
		{
			"one number, two needs", room,
			[]protocol.Need{{Setting: "clients", Number: 20, Bytes: gib / 2}, {Setting: "clients", Number: 20, Bytes: gib / 2}},
			"--clients 20 takes 20 GiB of memory, 1 GiB each, and this machine has 16 GiB free", "give --clients 16 or fewer",
		},
		{
			"files", room,
			[]protocol.Need{{Setting: "clients", Number: 978, Files: 1}},
			"--clients 978 takes about 1025 open files (15 are open now), and the limit is 1024", "give --clients 977 or fewer, or raise the limit (ulimit -n 2050, or LimitNOFILE= of a systemd unit)",
		},
		{
			"files of several brokers", room,
			[]protocol.Need{{Setting: "clients", Number: 400, Files: 3}},
			"--clients 400 takes about 1247 open files (15 are open now), and the limit is 1024", "give --clients 325 or fewer, or raise the limit (ulimit -n 2494, or LimitNOFILE= of a systemd unit)",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.room.Check(tt.needs)
			if tt.want == "" {
				assert.Equal(t, err, nil, "got")
				return
			}
			e, ok := errors.AsType[*protocol.Error](err)
			assert.Must(t, ok, "got %v, want a target.Error", err)
			assert.True(t, e.Error() == tt.want && e.Hint == tt.hint, "got %q\n%q\nwant %q\n%q", e.Error(), e.Hint, tt.want, tt.hint)
		})
	}
}
