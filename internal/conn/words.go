package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"carronade/internal/advice"
)

// Hint returns a sentence on what to check when connecting failed, "" if the error does
// not show it. hasCert says whether a client certificate was given.
func Hint(err error, hasCert bool) string {
	var (
		dns      *net.DNSError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
	)
	switch {
	case IsNotAllowed(err):
		return advice.Hint(err)
	case errors.As(err, &unknown):
		return "add --tls-ca FILE with the authority's certificate (PEM)"
	case errors.As(err, &hostname):
		return "add --tls-server-name with a name that the certificate holds, or connect by such a name"
	case errors.As(err, &invalid):
		return "check the certificate's dates and this machine's clock"
	case isAlert(err) && !hasCert:
		return "the server may want a client certificate: add --tls-cert FILE --tls-key FILE"
	case isAlert(err):
		return "the server did not accept the TLS settings: check the client's certificate and its authority"
	case errors.As(err, &dns):
		return "check the host name, and this machine's DNS"
	}
	return ""
}

// isAlert reports whether the server ended a handshake with an alert.
func isAlert(err error) bool {
	return errors.As(err, new(tls.AlertError)) || strings.Contains(err.Error(), "remote error: tls:")
}

// IsRefused reports whether no server listens at the address.
func IsRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "refused it") // Windows
}

// IsTimeout reports whether a time limit was exceeded.
func IsTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// IsConnectionClosed reports whether the other side ended the connection.
func IsConnectionClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || strings.Contains(err.Error(), "forcibly closed") // Windows
}
