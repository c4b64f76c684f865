//go:build !linux

package system

import "errors"

// ErrSharedNetwork is the error of a process that has the network of this program.
var ErrSharedNetwork = errors.New("it shares the network of this machine, and what is dropped on the way to it would be dropped on the way to others")

// A PacketFilter drops packets in the network namespace of another process, on Linux.
type PacketFilter struct{}

// NetworkOf identifies the network namespace of a process, on Linux.
func NetworkOf(int) (string, error) { return "", errors.ErrUnsupported }

// OpenPackets prepares to drop packets that arrive at a process, on Linux.
func OpenPackets(int) (*PacketFilter, error) {
	return nil, errors.New("packets can be dropped only on Linux")
}

// Drop drops a share of the packets that arrive from now on, on Linux.
func (*PacketFilter) Drop(float64) error { return errors.ErrUnsupported }

// Close drops no more packets.
func (*PacketFilter) Close() error { return nil }

// ByHand returns the commands that remove the rules that stand: none.
func (*PacketFilter) ByHand() string { return "" }
