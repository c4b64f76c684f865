package traffic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"carronade/internal/testkit/assert"
	"carronade/internal/wire/riemann"
)

// frames are messages of two events each, with their lengths.
func frames(messages int) []byte {
	var out []byte
	for i := range messages {
		m := riemann.Msg{}
		for j := range 2 {
			m.Events = append(m.Events, riemann.Event{Service: fmt.Sprintf("service %d", i%10), Host: "host", State: "ok", HasTime: true, Time: 1767323045 + int64(2*i+j)/10, Metric: riemann.Metric{Kind: riemann.Double, Real: 1.5}, Tags: []string{"a"}})
		}
		at := len(out)
		out = append(out, 0, 0, 0, 0)
		out = riemann.AppendMsg(out, &m)
		riemann.PutFrame(out[at:])
	}
	return out
}

func readRiemann(data []byte) (messages, events int, err error) {
	err = Riemann(bufio.NewReader(bytes.NewReader(data)), func(m *RiemannMessage) error {
		messages++
		events += len(m.Events)
		return nil
	})
	return messages, events, err
}

func TestRiemannReadsMessages(t *testing.T) {
	data := frames(100)
	assert.True(t, IsRiemann(data) && IsRiemann(data[:50]), "the messages are not recognized")
	if messages, events, err := readRiemann(data); err != nil || messages != 100 || events != 200 {
		t.Errorf("got %d messages of %d events and %v, want 100 of 200", messages, events, err)
	}
}

func TestRiemannRefuses(t *testing.T) {
	good := frames(2)
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"cut in a message", good[:len(good)-3], "ends in a message"},
		{"cut in a length", good[:len(good)/2+2], "ends in the length"},
		{"too long", []byte{0x7f, 0, 0, 0, 1}, "longer than"},
		{"garbage", []byte("\x00\x00\x00\x05\xff\xff\xff\xff\xff"), "byte 0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := readRiemann(test.data)
			var at *Error
			assert.True(t, errors.As(err, &at) && strings.Contains(err.Error(), test.want), "got %v, want %q", err, test.want)
		})
	}
}

func FuzzRiemann(f *testing.F) {
	f.Add(frames(3))
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		IsRiemann(data)
		_, _, err := readRiemann(data)
		if at := (*Error)(nil); err != nil && !errors.As(err, &at) {
			t.Errorf("got %v, want an error that says where", err)
		}
	})
}
