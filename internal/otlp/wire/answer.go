package wire

import (
	"fmt"
	"time"
)

// A Partial is the answer to a request that was accepted at least in part.
type Partial struct {
	Rejected int64  // events
	Message  string // why, or a warning
}

// AppendAnswer appends the answer to an export request: empty, if everything was accepted.
func AppendAnswer(b []byte, p Partial) []byte {
	if p == (Partial{}) {
		return b
	}
	return AppendMessage(b, 1, AppendString(AppendUint(nil, 1, uint64(p.Rejected)), 2, p.Message))
}

// ReadAnswer reads the answer to an export request.
func ReadAnswer(b []byte) (p Partial, err error) {
	err = each(b, func(t *token) error {
		if t.num != 1 || t.typ != typeBytes {
			return nil
		}
		return each(b[t.at:t.end], func(u *token) error {
			switch {
			case u.num == 1 && u.typ == typeVarint:
				p.Rejected = int64(u.value)
			case u.num == 2 && u.typ == typeBytes:
				p.Message = string(b[t.at:t.end][u.at:u.end])
			}
			return nil
		})
	})
	return p, err
}

// A Status is google.rpc.Status: why a request was refused.
type Status struct {
	Code    int
	Message string
	Retry   time.Duration // of its RetryInfo
	Retries bool          // it has one
}

const retryInfo = "type.googleapis.com/google.rpc.RetryInfo"

// AppendStatus appends a status.
func AppendStatus(b []byte, s Status) []byte {
	b = AppendString(AppendUint(b, 1, uint64(s.Code)), 2, s.Message)
	if !s.Retries {
		return b
	}
	delay := AppendUint(AppendUint(nil, 1, uint64(s.Retry/time.Second)), 2, uint64(s.Retry%time.Second))
	return AppendMessage(b, 3, AppendMessage(AppendString(nil, 1, retryInfo), 2, AppendMessage(nil, 1, delay)))
}

// ReadStatus reads a status.
func ReadStatus(b []byte) (s Status, err error) {
	err = each(b, func(t *token) error {
		switch {
		case t.num == 1 && t.typ == typeVarint:
			s.Code = int(int32(t.value))
		case t.num == 2 && t.typ == typeBytes:
			s.Message = string(b[t.at:t.end])
		case t.num == 3 && t.typ == typeBytes:
			return s.readDetail(b[t.at:t.end])
		}
		return nil
	})
	return s, err
}

// readDetail reads a detail, of which only RetryInfo is known.
func (s *Status) readDetail(b []byte) error {
	var url string
	var value []byte
	err := each(b, func(t *token) error {
		switch {
		case t.num == 1 && t.typ == typeBytes:
			url = string(b[t.at:t.end])
		case t.num == 2 && t.typ == typeBytes:
			value = b[t.at:t.end]
		}
		return nil
	})
	if err != nil || url != retryInfo {
		return err
	}
	return each(value, func(t *token) error {
		if t.num != 1 || t.typ != typeBytes {
			return nil
		}
		s.Retry, s.Retries = 0, true
		return each(value[t.at:t.end], func(u *token) error {
			if u.typ != typeVarint {
				return nil
			}
			unit := map[int]time.Duration{1: time.Second, 2: time.Nanosecond}[u.num]
			if n := int64(u.value); n >= 0 && (unit == 0 || n <= int64(maxRetry/unit)) {
				s.Retry += time.Duration(n) * unit
			} else {
				return fmt.Errorf("a retry delay of %d", n)
			}
			return nil
		})
	})
}

// maxRetry is the longest delay that is understood.
const maxRetry = 1000 * time.Hour

// each calls f with each field of a message.
func each(b []byte, f func(t *token) error) error {
	for at := 0; at < len(b); {
		t, end, err := next(b, at)
		if err == nil {
			err = f(&t)
		}
		if err != nil {
			return err
		}
		at = end
	}
	return nil
}
