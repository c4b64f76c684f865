package kafka

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/twmb/franz-go/pkg/kerr"

	"carronade/load"
)

// notAppended are the errors that a broker answers before it looks at a batch:
// it does not know the partition, or does not lead it.
func notAppended(code int16) bool {
	switch code {
	case kerr.UnknownTopicOrPartition.Code, kerr.LeaderNotAvailable.Code, kerr.NotLeaderForPartition.Code, kerr.UnknownTopicID.Code:
		return true
	}
	return false
}

// perhapsAppended are the errors that leave open whether the batch is in the
// log: too few replicas have it yet, the disk failed while it was written, or
// nobody knows.
func perhapsAppended(code int16) bool {
	switch code {
	case kerr.RequestTimedOut.Code, kerr.NotEnoughReplicasAfterAppend.Code, kerr.NetworkException.Code,
		kerr.KafkaStorageError.Code, kerr.UnknownServerError.Code:
		return true
	}
	return false
}

// classOf is the class of a broker's error.
func classOf(code int16) load.Class {
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

// errorText is a broker's error by name, with its own words about it.
func errorText(code int16, message []byte) string {
	name := fmt.Sprintf("error %d", code)
	words := plainWords(message)
	if e := kerr.TypedErrorForCode(code); e != nil {
		name = e.Message
		if words == "" {
			words = e.Description
		}
	}
	if words == "" {
		return name
	}
	return name + ": " + words
}

// mostWords bounds what is kept of a broker's words, in bytes.
const mostWords = 400

// plainWords are a broker's words as they may be shown: bounded, and without
// what a terminal would act on.
func plainWords(b []byte) string {
	cut := len(b) > mostWords
	words := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(b[:min(len(b), mostWords)]), ""))
	if cut {
		words += "..."
	}
	return words
}
