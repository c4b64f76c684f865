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
		{"a server's users", "x.plain.sasl.jaas.config=a.b.PlainLoginModule required \\\n  username=\"admin\" \\\n  password=\"" + canary + "\" \\\n  user_admin=\"" + canary + "\" \\\n  user_alice=\"" + canary + "\";\nport=1\n", "username=\"admin\" \\\n  password=*** \\\n  user_admin=*** \\\n  user_alice=***;\nport=1\n"},
		{"a login module's file", "KafkaServer {\n  a.PlainLoginModule required\n  username='u'\n  user_u=" + canary + ";\n};\n", "user_u=***;\n};\n"},
		{"a module with a semicolon", `x = LoginModule required password="a;` + canary + `" user_b="` + canary + `";`, "user_b=***"},
		{"a module in quotes", `O="-Dx.jaas.config=PlainLoginModule required username=\"u\" user_b=\"` + canary + `\";"`, `user_b=***`},
		{"a module without an end", `x: PlainLoginModule required user_b="` + canary, "user_b="},
		{"Elastic's cloud", "cloud.auth: \"elastic:" + canary + "\"\noutput.x: 1\n", "cloud.auth: ***\noutput.x: 1\n"},
		{"a schema registry's", "schema.registry.basic.auth.user.info=joe:" + canary + "\nport=1\n", "info=***\nport=1\n"},
		{"a login under auth", "proxy.auth=joe:" + canary + "\nssl.client.auth=required\n", "ssl.client.auth=required\n"},
		{"a login in base64", `{"auths": {"h": {"auth": "am9lOmtlc3RyZWwtOTI3MQ=="}}}`, `{"auth": ***}`},
		{"auth is not a login", "auth: http://127.0.0.1:80/login\nclient.auth: none\n", "auth: http://127.0.0.1:80/login\nclient.auth: none\n"},
		{"names below a name", "authorization:\n  credentials: " + canary + "\n  type: simple\ncredentials:\n  user: u\n  password: " + canary + "\n", "authorization:\n  credentials: ***\n  type: simple\ncredentials:\n  user: u\n  password: ***\n"},
		{"a list of YAML", "passwords:\n- " + canary + "\n# two\n- " + canary + "\nhosts:\n- a\n", "passwords:\n- ***\n# two\n- ***\nhosts:\n- a\n"},
		{"a deeper list", "x:\n  tokens:\n    - " + canary + "\n    - env:TOKEN\n  port: 1\n", "    - ***\n    - env:TOKEN\n  port: 1\n"},
		{"a value on the next line", "password:\n  " + canary + "\nport: 1\n", "password:\n  ***\nport: 1\n"},
		{"several in one value", "KAFKA_CLIENT_PASSWORDS=a1b2," + canary + "\nUSERS=a,b\n", "KAFKA_CLIENT_PASSWORDS=***\nUSERS=a,b\n"},
		{"blanks in one", "export DB_PASS=a b; " + canary + "\n", "export DB_PASS=***\n"},
		{"a list in brackets", `api_keys: ["a", "` + canary + `"]` + "\nport: 1\n", "api_keys: ***\nport: 1\n"},
		{"a list of JSON", "{\"tokens\": [\n  \"a\",\n  \"" + canary + "\"\n], \"n\": 1}", `"n": 1}`},
		{"a container's variable", "env:\n- name: ES_PASSWORD\n  value: " + canary + "\n- name: HEAP\n  value: 1g\n", "- name: ES_PASSWORD\n  value: ***\n- name: HEAP\n  value: 1g\n"},
		{"a property of XML", `<property name="db.password" value="` + canary + `"/><property name="n" value="1"/>`, `name="n" value="1"`},
		{"a property's element", "<name>x.secret.key</name>\n<value>" + canary + "</value>", "<value>***</value>"},
		{"the ends of Windows", "password=" + canary + "\r\nport=1\r\n", "password=***\r\nport=1\r\n"},
		{"a proxy's user", "curl --proxy-user joe:" + canary + " http://h/\n", "joe:*** http://h/"},
		{"what only sounds like one", "ssl.client.auth=required\nauthorizer.class.name=x.Acl\nsasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256\ndelegation.token.max.lifetime.ms=9\n", "ssl.client.auth=required\nauthorizer.class.name=x.Acl\nsasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256\ndelegation.token.max.lifetime.ms=9\n"},
		{"a reference stays", "password: env:KAFKA_PASSWORD\n", "password: env:KAFKA_PASSWORD\n"},
		{"known by the run", "who knows " + canary + " here\n", "who knows *** here\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m Mask
			if tt.name == "known by the run" {
				m.Add(canary)
			}
			got := m.Text(tt.text)
			if strings.Contains(got, canary) || !strings.Contains(got, tt.want) {
				t.Errorf("got\n%s\nwant in it\n%s", got, tt.want)
			}
		})
	}
}

func FuzzDocument(f *testing.F) {
	f.Add("passwords:\n - x\n", "LoginModule required a=\"")
	f.Add("password: |\n  x", "LoginModule required \\\n a = 'b' c")
	f.Fuzz(func(t *testing.T, a, b string) {
		var m Mask
		m.Add(canary)
		once := m.Text(a + canary + b)
		if strings.Contains(once, canary) {
			t.Errorf("got %q, which holds the secret", once)
		}
		var fresh Mask
		_, _ = fresh.Text(a+"\n"+b), fresh.Args([]string{a, b})
	})
}
