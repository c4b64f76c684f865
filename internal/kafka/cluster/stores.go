package cluster

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"github.com/youmark/pkcs8"
	"software.sslmate.com/src/go-pkcs12"

	"carronade/internal/conn"
	"carronade/internal/place"
	"carronade/protocol"
)

// The blocks of PEM that certificates and keys are in.
const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
	pemLockedKey   = "ENCRYPTED PRIVATE KEY"
)

// javaStore reads the store of a Java client, truststore or keystore, as PEM: a file of the kind JKS, PKCS12 or
// PEM, or the text in another property. Like Java, it tells JKS and PKCS12 apart by their first bytes. Without
// a file and a text, the result is empty.
func javaStore(name, text string, props map[string]string) (conn.Text, error) {
	prop := "ssl." + name + ".location"
	file, kind := props[prop], strings.ToUpper(props["ssl."+name+".type"])
	from := "the client property " + prop
	if file == "" {
		from = "the client properties ssl." + name
		data, err := unlockPEM([]byte(text), props["ssl.key.password"])
		return conn.Text{Data: data, From: from}, failedStore(from, err)
	}
	data, err := place.ReadFile(file)
	if err != nil {
		return conn.Text{}, failedStore(from, err)
	}
	password := props["ssl."+name+".password"]
	switch {
	case kind == "PEM" || kind == "" && bytes.Contains(data, []byte("-----BEGIN ")):
		data, err = unlockPEM(data, props["ssl.key.password"])
	case bytes.HasPrefix(data, []byte{0xfe, 0xed, 0xfe, 0xed}):
		data, err = fromJKS(data, password, cmp.Or(props["ssl.key.password"], password))
	case bytes.HasPrefix(data, []byte{0x30}): // a sequence of ASN.1
		data, err = fromPKCS12(data, password, name == "truststore")
	default:
		err = fmt.Errorf("it is no store of the kinds JKS, PKCS12 and PEM (the property says %s)", cmp.Or(kind, "nothing"))
	}
	return conn.Text{Data: data, From: from}, failedStore(from, err)
}

// failedStore is the error of a store, nil if err is.
func failedStore(from string, err error) error {
	if err == nil {
		return nil
	}
	e := &protocol.Error{Doing: "read " + from, Err: err, Hint: "check the file, its type and its password"}
	if errors.Is(err, errLockedKey) {
		e.Hint = "set ssl.key.password"
	}
	return e
}

// errLockedKey is the error of a key without its password.
var errLockedKey = errors.New("the private key is encrypted, and no password was given")

// pemBlock finds blocks of PEM whose lines were joined, as by a properties file with a backslash at each line's end.
var pemBlock = regexp.MustCompile(`-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]*)-----END [A-Z0-9 ]+-----`)

// unlockPEM returns the blocks of a text as PEM that Go reads: each in lines of its own, and keys decrypted.
func unlockPEM(text []byte, password string) (out []byte, err error) {
	defer refuseDamaged(&err)
	for _, m := range pemBlock.FindAllSubmatch(text, -1) {
		der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(m[2])), ""))
		if err != nil {
			return nil, errors.New("a block of PEM is not base64")
		}
		kind := string(m[1])
		if kind == pemLockedKey {
			if password == "" {
				return nil, errLockedKey
			}
			key, _, err := pkcs8.ParsePrivateKey(der, []byte(password))
			if err != nil {
				return nil, errors.New("the private key cannot be decrypted: is ssl.key.password right?")
			}
			if kind, der, err = encodedKey(key); err != nil {
				return nil, err
			}
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
	}
	if out == nil {
		return text, nil // what reads it says what is missing
	}
	return out, nil
}

func encodedKey(key any) (kind string, der []byte, err error) {
	der, err = x509.MarshalPKCS8PrivateKey(key)
	return pemKey, der, err
}

// fromJKS reads Java's own format: its first private key with its chain, and its trusted certificates.
func fromJKS(data []byte, password, keyPassword string) (out []byte, err error) {
	defer refuseDamaged(&err)
	if !sizesFit(data) {
		return nil, errDamaged
	}
	store := keystore.New(keystore.WithOrderedAliases())
	if err := store.Load(bytes.NewReader(data), []byte(password)); err != nil && (password != "" || !strings.Contains(err.Error(), "digest")) {
		return nil, fmt.Errorf("read the store: %w (is its password right?)", err) // without a password Java does not check the digest either
	}
	add := func(kind string, der []byte) {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
	}
	keyed := false
	for _, alias := range store.Aliases() {
		switch {
		case store.IsPrivateKeyEntry(alias) && !keyed:
			entry, err := store.GetPrivateKeyEntry(alias, []byte(keyPassword))
			if err != nil {
				return nil, errors.New("the private key cannot be decrypted: is ssl.key.password right?")
			}
			add(pemKey, entry.PrivateKey)
			for _, c := range entry.CertificateChain {
				add(pemCertificate, c.Content)
			}
			keyed = true
		case store.IsTrustedCertificateEntry(alias):
			entry, err := store.GetTrustedCertificateEntry(alias)
			if err != nil {
				return nil, err
			}
			add(pemCertificate, entry.Certificate.Content)
		}
	}
	return out, nil
}

// errDamaged is the error of a store or a key whose bytes contradict each other.
var errDamaged = errors.New("it is damaged")

// refuseDamaged makes an error of a panic: the libraries that read stores and keys have some, for damaged ones.
func refuseDamaged(err *error) {
	if recover() != nil {
		*err = errDamaged
	}
}

// sizesFit reports whether the sizes that a store of Java's own format says are those of its bytes. The library that
// reads it asks for as much memory as they say.
func sizesFit(data []byte) bool {
	const key, certificate = 1, 2 // kinds of entries
	fits := true
	skip := func(n uint32) {
		if uint64(n) > uint64(len(data)) {
			n, fits = uint32(len(data)), false //nolint:gosec // less than n
		}
		data = data[n:]
	}
	number := func(size int) (n uint32) {
		if len(data) < size {
			fits, data = false, nil
			return 0
		}
		for _, b := range data[:size] {
			n = n<<8 | uint32(b)
		}
		data = data[size:]
		return n
	}
	skip(4) // that it is one
	version := number(4)
	cert := func() {
		if version > 1 {
			skip(number(2)) // its type
		}
		skip(number(4))
	}
	for left := number(4); left > 0 && fits; left-- {
		kind := number(4)
		skip(number(2)) // its alias
		skip(8)         // when it was made
		switch kind {
		case key:
			skip(number(4))
			for chain := number(4); chain > 0 && fits; chain-- {
				cert()
			}
		case certificate:
			cert()
		default:
			return false
		}
	}
	return fits
}

// fromPKCS12 reads a key with its chain, or the certificates of a trust store.
func fromPKCS12(data []byte, password string, trust bool) (out []byte, err error) {
	defer refuseDamaged(&err)
	var certs []*x509.Certificate
	if trust {
		if certs, err = pkcs12.DecodeTrustStore(data, password); err != nil {
			return nil, err
		}
	} else {
		key, leaf, chain, err := pkcs12.DecodeChain(data, password)
		if err != nil {
			return nil, err
		}
		kind, der, err := encodedKey(key)
		if err != nil {
			return nil, err
		}
		out = pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		certs = slices.Concat([]*x509.Certificate{leaf}, chain)
	}
	for _, c := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c.Raw})...)
	}
	return out, nil
}
