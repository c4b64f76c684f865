package shell

import (
	"encoding/binary"
	"io"
	"sync"
)

// Keys that a session sees in raw mode.
const (
	keyCancel = 3    // Ctrl-C
	keyErase  = 21   // Ctrl-U: removes the line
	keyReturn = '\r' // ends it
)

// naws is the telnet option with the size of a window (RFC 1073).
const naws = 31

// mostTyped is how many bytes are kept that were typed while a command runs.
const mostTyped = MaxLine

// keys are what a user types on a terminal. A goroutine always reads them, so that Ctrl-C has an
// effect while a command runs: it ends the command, and what was typed after it is dropped. While the
// session waits for a line, Ctrl-C becomes the command cancel, because the line editor would take it
// for the end of the input. Safe for concurrent use.
type keys struct {
	r       io.ByteReader
	resized func(columns, rows int) // for changes that come as telnet's option; may be nil

	mu      sync.Mutex
	changed *sync.Cond
	left    []byte // typed, and not yet read by the editor
	err     error  // of r; it comes after left
	// busy is set after the editor got the end of a line, until it wants more.
	busy        bool
	asking      bool   // a command that runs asks a question
	interrupted bool   // Ctrl-C was typed while busy
	interrupt   func() // ends the command that runs; nil: none
}

func newKeys(r io.ByteReader) *keys {
	k := &keys{r: r}
	k.changed = sync.NewCond(&k.mu)
	return k
}

// pump reads keys until their source ends.
func (k *keys) pump() {
	for {
		b, err := k.r.ReadByte()
		switch {
		case err != nil:
		case b == telnetIAC:
			err = k.option()
		case b == keyCancel:
			k.cancel()
		default:
			k.put(b)
		}
		if err != nil {
			k.end(err)
			return
		}
	}
}

// put adds a key, and waits while too many are left.
func (k *keys) put(b byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.left) >= mostTyped && k.err == nil {
		k.changed.Wait()
	}
	k.left = append(k.left, b)
	k.changed.Broadcast()
}

// cancel does what Ctrl-C means now.
func (k *keys) cancel() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = k.left[:0]
	switch {
	case k.busy:
		k.interrupted = true
	case k.asking: // an empty answer ends the question
		k.left = append(k.left, keyErase, keyReturn)
	default:
		k.left = append(k.left, keyErase)
		k.left = append(k.left, "cancel\r"...)
	}
	if (k.busy || k.asking) && k.interrupt != nil {
		k.interrupt()
	}
	k.changed.Broadcast()
}

// during says what ends the command that runs; nil after its end. A Ctrl-C that was typed since the
// end of its line ends it at once.
func (k *keys) during(interrupt func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.interrupt = interrupt
	if k.interrupted && interrupt != nil {
		interrupt()
	}
}

// ask says whether a command asks a question.
func (k *keys) ask(asking bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asking = asking
}

// end ends the input after what was typed.
func (k *keys) end(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.err = err
	}
	k.changed.Broadcast()
}

// Read returns keys up to the end of a line, for the editor.
func (k *keys) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.busy, k.interrupted = false, false
	for len(k.left) == 0 {
		if k.err != nil {
			return 0, k.err
		}
		k.changed.Wait()
	}
	n := 0
	for n < min(len(p), len(k.left)) && !k.busy {
		p[n] = k.left[n]
		k.busy = p[n] == keyReturn || p[n] == '\n'
		n++
	}
	if k.busy && n < min(len(p), len(k.left)) && p[n-1] == keyReturn && k.left[n] == '\n' { // one end
		p[n] = k.left[n]
		n++
	}
	k.left = append(k.left[:0], k.left[n:]...)
	k.changed.Broadcast()
	return n, nil
}

// option reads a command of telnet, after its first byte.
func (k *keys) option() error {
	command, err := k.r.ReadByte()
	if err != nil || command < telnetSB || command > telnetDont {
		return err
	}
	option, err := k.r.ReadByte()
	if err != nil || command != telnetSB {
		return err
	}
	var data []byte
	for {
		b, err := k.r.ReadByte()
		if err == nil && b == telnetIAC {
			if b, err = k.r.ReadByte(); err == nil && b == telnetSE {
				break
			}
		}
		if err != nil {
			return err
		}
		if len(data) < 16 { // no option that is used here is longer
			data = append(data, b)
		}
	}
	if option == naws && len(data) == 4 && k.resized != nil {
		k.resized(int(binary.BigEndian.Uint16(data)), int(binary.BigEndian.Uint16(data[2:])))
	}
	return nil
}
