package secret

import (
	"strings"
	"testing"

	"carronade/internal/testkit"
)

// Secrets on other lines than their names, and in XML and pairs, are not in what Log
// returns; the rest of the lines is.
func TestLog(t *testing.T) {
	const key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + "kestrel5519"
	for _, tt := range []struct{ name, text, want string }{
		{"an element", "a <password>" + canary + "</password> b\n", "a <password>***</password> b\n"},
		{"an element on several lines", "<password>\n  " + canary + "\n</password>\nafter\n", "<password>***\n</password>\nafter\n"},
		{"what looks like an element", "usage: serve --token <token>\nafter\n", ""},
		{"a pair", `env {"name":"DB_PASSWORD","value":"` + canary + `"} read` + "\nafter\n", `env {"name":"DB_PASSWORD","value":***} read` + "\nafter\n"},
		{"an entry in JSON", `{"name":"DB_PASSWORD","value":"` + canary + `"}` + "\n" + `{"value":"harmless"}` + "\n", `{"name":"DB_PASSWORD","value":***}` + "\n" + `{"value":"harmless"}` + "\n"},
		{"a pair on several lines", "env:\n- name: DB_PASSWORD\n  value: " + canary + "\n- name: HOME\n  value: /root\nafter\n", "env:\n- name: DB_PASSWORD\n  value: ***\n- name: HOME\n  value: /root\nafter\n"},
		{"a pair, the value first", "{\n  \"value\": \"" + canary + "\",\n  \"name\": \"DB_PASSWORD\"\n}\nafter\n", ""},
		{"a block", "password: |\n  " + canary + "\n  more " + canary + "\nafter\n", "password: ***\nafter\n"},
		{"a block of an entry", "2026-11-23 INFO settings: password: |\n  " + canary + "\nafter\n", "2026-11-23 INFO settings: password: ***\nafter\n"},
		{"a value below its name", "  password:\n    " + canary + "\n  user: it\nafter\n", "  password:\n    ***\n  user: it\nafter\n"},
		{"a reference below its name", "password:\n  env:IT\nafter\n", "password:\n  env:IT\nafter\n"},
		{"a key", "-----BEGIN RSA PRIVATE KEY-----\n" + key + "\n" + key + "\n-----END RSA PRIVATE KEY-----\nafter\n", "-----BEGIN RSA PRIVATE KEY-----\n***\n-----END RSA PRIVATE KEY-----\nafter\n"},
		{"a key on one line", `pem="-----BEGIN PRIVATE KEY-----\n` + key + `\n-----END PRIVATE KEY-----\n"` + "\nafter\n", ""},
		{"a key without its end", "-----BEGIN PRIVATE KEY-----\n" + key + "\n" + key + "\nafter it\nafter\n", "-----BEGIN PRIVATE KEY-----***\nafter it\nafter\n"},
		{"a key without its beginning", "before it\n" + key + "\n" + key + "\n-----END PRIVATE KEY-----\nafter\n", "before it\n***\n-----END PRIVATE KEY-----\nafter\n"},
		{"a key with a foreign line", "-----BEGIN PRIVATE KEY-----\n" + key + "\n----- health check -----\n" + key + "\n-----END PRIVATE KEY-----\nafter\n", "-----BEGIN PRIVATE KEY-----\n***\n-----END PRIVATE KEY-----\nafter\n"},
		{"a key behind prefixes", "-----> -----BEGIN PRIVATE KEY-----\n-----> " + key + "\n-----> " + key + "\n-----> -----END PRIVATE KEY-----\nafter\n", "-----> -----BEGIN PRIVATE KEY-----\n*** -----END PRIVATE KEY-----\nafter\n"},
		{"a key before another one", "-----BEGIN PRIVATE KEY-----\n" + key + "\nbetween\n-----BEGIN PRIVATE KEY-----\n" + key + "\n-----END PRIVATE KEY-----\nafter\n", "-----BEGIN PRIVATE KEY-----***\nbetween\n-----BEGIN PRIVATE KEY-----\n***\n-----END PRIVATE KEY-----\nafter\n"},
		{"a last line far behind", "-----BEGIN PRIVATE KEY-----\n" + key + "\nafter it\n" + strings.Repeat(".\n", 17<<10) + "-----END PRIVATE KEY-----\nafter\n", ""},
		{"a key behind a whole one", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\nbefore it\n" + key + "\n-- " + key + "-----END PRIVATE KEY-----\nafter\n", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\nbefore it\n***-----END PRIVATE KEY-----\nafter\n"},
		{"a certificate", "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END CERTIFICATE-----\n"},
		{"an open quote", "invalid token 'abc\nafter\n", ""},
		{"what Text hides", "x password=" + canary + " y\nafter", "x password=*** y\nafter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m Mask
			got := m.Text(tt.text)
			if strings.Contains(got, canary) || strings.Contains(got, "kestrel5519") || strings.Contains(tt.text, "after") && !strings.Contains(got, "after") || tt.want != "" && got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Very many names cost no more than few: values beside them are hidden without looking
// whose they are.
func TestLogOfManyNames(t *testing.T) {
	var m Mask
	for _, entry := range []string{
		"- name: DB_PASSWORD\n  value: " + canary + "\n",
		"{\n\"value\": \"" + canary + "\",\n\"name\": \"DB_PASSWORD\"\n},\n",
		"<property><name>token</name><value>" + canary + "</value></property>\n",
		"key=token value=\"" + canary + "\n",
	} {
		text := strings.Repeat(entry, testkit.Cases(32<<10, 8<<10)/len(entry))
		if got := m.Text(text); strings.Contains(got, canary) || strings.Count(got, "\n") < 100 {
			t.Errorf("%q: got %.300q", entry, got)
		}
	}
	line := `{"env":[` + strings.Repeat(`{"name":"DB_PASSWORD","value":"`+canary+`"},`, 150) + "]}\n"
	if got := m.Text(line); strings.Contains(got, canary) || !strings.Contains(got, "DB_PASSWORD") {
		t.Errorf("got %.300q", got)
	}
}

// No part of a known secret remains at the end of a line that was cut.
func TestWithoutCut(t *testing.T) {
	var m Mask
	m.Add("kestrel-5519-kes", "9-kestrels")
	for _, tt := range []struct{ line, want string }{
		{"a line of 30 bytes, kestrel-55", "a line of 30 bytes, ***"},
		{"a line of 30 byte, kestrel-5519-kes", "a line of 30 byte, ***"},
		{"a line of 31 bytes: kestrel-5519-kes!", "a line of 31 bytes: ***!"},
		{"a line of more than 30 bytes, k", "a line of more than 30 bytes, ***"},
		{"a line of 30 bytes, and no more", "a line of 30 bytes, and no more"},
		{"kestrel-55", "kestrel-55"}, // it was not cut
	} {
		if got := m.WithoutCut(tt.line, 30); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.line, got, tt.want)
		}
	}
}

// FuzzLog: what the mask knows is in no output, and every output comes to an end.
func FuzzLog(f *testing.F) {
	for _, s := range []string{"password: |\n  x\n", "<password>\nx\n</password>", `{"name":"MY_TOKEN",` + "\n" + `"value":"x"}`, "-----BEGIN PRIVATE KEY-----\nx", "x-----END PRIVATE KEY-----", "- name: token\n  value: x\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var m Mask
		m.Add("kestrel-5519")
		if got := m.Text(s + " kestrel-5519 " + s); strings.Contains(got, "kestrel-5519") {
			t.Errorf("got %q", got)
		}
	})
}

func BenchmarkLog(b *testing.B) {
	var m Mask
	m.Add("kestrel-5519")
	line := `{"level":"info","@timestamp":"2026-11-23T02:00:00.000Z","logger":"request","message":"request ok","url":"/intake/v2/events","status":202}` + "\n"
	text := strings.Repeat(line, 32<<10/len(line))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.Text(text)
	}
}
