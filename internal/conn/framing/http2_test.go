package framing

import (
	"testing"

	"carronade/test/testkit/assert"
)

// TestFrames: frames with padding and priority, and those that HTTP/2 does not allow.
func TestFrames(t *testing.T) {
	for _, tt := range []struct {
		name    string
		b       []byte
		payload string
		wrong   bool
	}{
		{"data", Append(nil, Data, 0, 1, 'a', 'b'), "ab", false},
		{"padded", Append(nil, Data, 8, 1, 1, 'a', 'b', 0), "ab", false},
		{"more padding than bytes", Append(nil, Data, 8, 1, 9, 'a'), "", true},
		{"priority", Append(nil, Headers, 0x20, 1, 0, 0, 0, 0, 0, 'h'), "h", false},
		{"data of no stream", Append(nil, Data, 0, 0, 'a'), "", true},
		{"settings of a stream", Append(nil, Settings, 0, 1), "", true},
		{"a short ping", Append(nil, Ping, 0, 0, 1), "", true},
		{"a push", Append(nil, Push, 0, 1, 1), "", true},
		{"another protocol", []byte("HTTP/1.1 400 Bad Request"), "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, n, err := Read(tt.b)
			assert.Equal(t, err != nil, tt.wrong, "refused")
			if err == nil {
				assert.Equal(t, n, len(tt.b), "bytes")
				assert.Equal(t, string(f.Payload), tt.payload, "payload")
			}
		})
	}
	_, n, err := Read(Append(nil, Data, 0, 1, 'a')[:5])
	assert.True(t, n == 0 && err == nil, "a frame that came in part: %d, %v", n, err)
}

// FuzzReadFrame: nothing that a server sends ends the program.
func FuzzReadFrame(f *testing.F) {
	f.Add(AppendPreface(nil)[24:])
	f.Fuzz(func(_ *testing.T, b []byte) {
		for {
			f, n, err := Read(b)
			if n == 0 || err != nil {
				return
			}
			if f.Type == Settings {
				f.EachSetting(func(uint16, uint32) {})
			}
			if f.Type == Reset || f.Type == Window || f.Type == GoAway {
				_ = f.Number()
			}
			b = b[n:]
		}
	})
}
