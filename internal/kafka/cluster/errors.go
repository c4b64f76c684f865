package cluster

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

// Classify returns the class of an error of franz-go, and whether the broker certainly
// did not append the record. That is certain if an answer says so, or if the record was
// never sent.
func Classify(err error) (class load.Class, certain bool) {
	var ke *kerr.Error
	switch {
	case errors.As(err, &ke):
		return ClassOf(ke.Code), !PerhapsAppended(ke.Code)
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

// PerhapsAppended reports whether an error leaves open whether the batch is in
// the log: too few replicas have it yet, the disk failed during the write, or the
// reason is unknown.
func PerhapsAppended(code int16) bool {
	switch code {
	case kerr.RequestTimedOut.Code, kerr.NotEnoughReplicasAfterAppend.Code, kerr.NetworkException.Code,
		kerr.KafkaStorageError.Code, kerr.UnknownServerError.Code:
		return true
	}
	return false
}

// ClassOf returns the class of a broker's error
// (https://kafka.apache.org/protocol#protocol_error_codes).
func ClassOf(code int16) load.Class {
	switch code {
	case kerr.RequestTimedOut.Code, kerr.NotEnoughReplicasAfterAppend.Code: // appended, and not replicated in time
		return load.Timeout
	case kerr.ThrottlingQuotaExceeded.Code:
		return load.Throttled
	case kerr.MessageTooLarge.Code, kerr.RecordListTooLarge.Code:
		return load.TooLarge
	case kerr.TopicAuthorizationFailed.Code, kerr.ClusterAuthorizationFailed.Code, kerr.GroupAuthorizationFailed.Code,
		kerr.TransactionalIDAuthorizationFailed.Code, kerr.SaslAuthenticationFailed.Code, kerr.DelegationTokenAuthorizationFailed.Code:
		return load.Unauthorized
	case kerr.UnsupportedVersion.Code, kerr.InvalidRequest.Code, kerr.UnsupportedForMessageFormat.Code,
		kerr.UnsupportedCompressionType.Code, kerr.CorruptMessage.Code:
		return load.Protocol
	}
	return load.Rejected
}

// Recoverable reports whether fetching may succeed later, after an error of a broker or of a
// connection.
func Recoverable(err error) bool {
	var ke *kerr.Error
	switch {
	case errors.As(err, &ke):
		return ke.Retriable || errors.Is(ke, kerr.UnknownTopicID) || errors.Is(ke, kerr.InconsistentTopicID) ||
			errors.Is(ke, kerr.OffsetOutOfRange) || errors.Is(ke, kerr.UnknownServerError)
	}
	return true // a failed connection
}
