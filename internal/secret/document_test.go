package secret

import (
	"strings"
	"testing"
)

func TestDocument(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"properties", "num.io.threads=8\nssl.keystore.password=" + canary + "\nlisteners=PLAINTEXT://:9092\n", "num.io.threads=8\nssl.keystore.password=***\nlisteners=PLAINTEXT://:9092\n"},
		{"a login module", `sasl.jaas.config=org.apache.PlainLoginModule required username="u" password="` + canary + `";`, "username"},
		{"YAML", "output:\n  password: " + canary + "\n  hosts: [a]\n", "output:\n  password: ***\n  hosts: [a]\n"},
		{"a block of YAML", "tls:\n  api_key: |\n    " + canary + "\n    " + canary + "\n  port: 1\n", "tls:\n  api_key: ***\n  port: 1\n"},
		{"JSON", `{"secret_token": "` + canary + `", "n": 1}`, `"n": 1`},
		{"XML", "<server><keyPassword attr='1'>" + canary + "</keyPassword><port>1</port></server>", "<server><keyPassword attr='1'>***</keyPassword><port>1</port></server>"},
		{"a key", "-----BEGIN RSA PRIVATE KEY-----\n" + canary + "\n-----END RSA PRIVATE KEY-----\nport 1\n", "port 1\n"},
		{"a key cut short", "a\n-----BEGIN PRIVATE KEY-----\n" + canary, "a\n"},
		{"a certificate stays", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "MIIB"},
		{"an address", "url = http://u:" + canary + "@h/\n", "url = http://***@h/\n"},
		{"a login's file", "machine h login u password " + canary + "\n", "machine h login u password ***\n"},
		{"a reference stays", "password: env:KAFKA_PASSWORD\n", "password: env:KAFKA_PASSWORD\n"},
		{"known by the run", "who knows " + canary + " here\n", "who knows *** here\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m Mask
			if tt.name == "known by the run" {
				m.Add(canary)
			}
			got := m.Document(tt.text)
			if strings.Contains(got, canary) || !strings.Contains(got, tt.want) {
				t.Errorf("got\n%s\nwant in it\n%s", got, tt.want)
			}
		})
	}
}
