package cluster

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"github.com/youmark/pkcs8"
	"software.sslmate.com/src/go-pkcs12"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// FuzzStores checks that a store of any bytes is read or refused.
func FuzzStores(f *testing.F) {
	const password = "canary"
	pair := testkit.NewAuthority("test").Pair()
	cert := assert.Value(x509.ParseCertificate(pair.Certificate[0]))(f)
	der := assert.Value(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(f)
	store, jks := keystore.New(), &bytes.Buffer{}
	assert.OK(f, store.SetPrivateKeyEntry("me", keystore.PrivateKeyEntry{CreationTime: time.Now(), PrivateKey: der, CertificateChain: []keystore.Certificate{{Type: "X509", Content: cert.Raw}}}, []byte(password)))
	assert.OK(f, store.SetTrustedCertificateEntry("ca", keystore.TrustedCertificateEntry{CreationTime: time.Now(), Certificate: keystore.Certificate{Type: "X509", Content: cert.Raw}}))
	assert.OK(f, store.Store(jks, []byte(password)))
	locked := assert.Value(pkcs8.MarshalPrivateKey(pair.PrivateKey, []byte(password), nil))(f)
	f.Add(jks.Bytes())
	f.Add(assert.Value(pkcs12.LegacyRC2.Encode(pair.PrivateKey, cert, nil, password))(f))
	f.Add(assert.Value(pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{cert}, password))(f))
	f.Add(append(pem.EncodeToMemory(&pem.Block{Type: pemLockedKey, Bytes: locked}), pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: cert.Raw})...))
	file := filepath.Join(f.TempDir(), "store")
	f.Fuzz(func(t *testing.T, data []byte) {
		assert.OK(t, os.WriteFile(file, data, 0o600))
		for _, name := range []string{"truststore", "keystore"} {
			for _, given := range []string{password, ""} {
				_, err := javaStore(name, "", map[string]string{
					"ssl." + name + ".location": file, "ssl." + name + ".password": given, "ssl.key.password": given,
				})
				assert.True(t, err == nil || !strings.Contains(err.Error(), password), "the error contains the password: %v", err)
			}
		}
	})
}

// FuzzProviders checks that references in properties are resolved or refused.
func FuzzProviders(f *testing.F) {
	f.Add("a,b", "FileConfigProvider", "x${a:p:k}y${b:p}")
	f.Add(" a ", "x.y$DirectoryConfigProvider", "${a:/:..}${a::}")
	f.Add("a", "EnvVarConfigProvider", "${a:${a:b}}")
	f.Fuzz(func(t *testing.T, names, class, value string) {
		props := map[string]string{"config.providers": names, "config.providers.a.class": class, "client.id": value}
		if err := resolveProviders(props); err != nil {
			return
		}
		for name := range props {
			assert.True(t, name == "client.id", "the property %s is left", name)
		}
	})
}

// FuzzProfiles checks that files of AWS's profiles are read.
func FuzzProfiles(f *testing.F) {
	f.Add([]byte("[default]\naws_access_key_id = A\n[x] # c\n  nested = 1\n; c\nk=v=w\n"))
	f.Add([]byte("[\n=\n[]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for key := range iniSection(data, "default") {
			assert.Equal(t, strings.ToLower(key), key, "the key is in lower case")
		}
	})
}
