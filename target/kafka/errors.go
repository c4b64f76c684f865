package kafka

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/conn"
	"carronade/load"
)

// classify returns the class of an error of franz-go, and whether the broker certainly
// did not append the record. That is certain if an answer says so, or if the record was
// never sent.
func classify(err error) (class load.Class, certain bool) {
	var ke *kerr.Error
	switch {
	case errors.As(err, &ke):
		return classOfCode(ke)
	case errors.Is(err, kgo.ErrMaxBuffered):
		return load.Rejected, true
	case errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, kgo.ErrRecordRetries), conn.IsTimeout(err):
		return load.Timeout, false
	case errors.Is(err, kgo.ErrAborting), errors.Is(err, kgo.ErrClientClosed), errors.Is(err, context.Canceled):
		return load.Canceled, false
	case conn.IsRefused(err), conn.IsConnectionClosed(err), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe), errors.Is(err, syscall.ECONNABORTED):
		return load.Refused, false
	}
	return load.Protocol, false
}

// classOfCode classifies the protocol's own error codes
// (https://kafka.apache.org/protocol#protocol_error_codes).
func classOfCode(ke *kerr.Error) (class load.Class, certain bool) {
	class = classOf(ke.Code)
	switch ke {
	case kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend: // appended, but perhaps not replicated
		return load.Timeout, false
	case kerr.NetworkException, kerr.KafkaStorageError, kerr.UnknownServerError:
		return class, false
	}
	return class, true
}
