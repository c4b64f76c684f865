package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/advice"
	"carronade/test/testkit/assert"
)

// JAAS is read as Java's StreamTokenizer reads it.
func TestJAASAsJavaReadsIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text, password, wrong string
	}{
		"blanks around =":      {text: `x.PlainLoginModule required username = "a"  password= "p" ;`, password: "p"},
		"no blank at all":      {text: `x.PlainLoginModule required username="a"password="p";`, password: "p"},
		"comments":             {text: "/* a; b */ x.PlainLoginModule required // c\n username=\"a\" password=\"p\"; // d", password: "p"},
		"a slash in a word":    {text: `x.PlainLoginModule required username="a" password="p//q/*";`, password: "p//q/*"},
		"escapes":              {text: `x.PlainLoginModule required password="a\tb\\\"\101\q";`, password: "a\tb\\\"Aq"},
		"several lines":        {text: "x.PlainLoginModule\n  required\n  username=a\n  password=p\n;", password: "p"},
		"several modules":      {text: `x.PlainLoginModule required password="canary"; x.ScramLoginModule required;`, wrong: "several login modules"},
		"quote over lines":     {text: "x.PlainLoginModule required password=\"can\nary\";", wrong: "a quote is not closed"},
		"comment never closed": {text: `x.PlainLoginModule required /* password="canary";`, wrong: "a comment is not closed"},
		"no value":             {text: `x.PlainLoginModule required password= ;`, wrong: "option 1 is not key=value"},
	} {
		t.Run(name, func(t *testing.T) {
			module, options, err := parseJAAS(tt.text)
			if tt.wrong != "" {
				assert.ErrorHas(t, err, tt.wrong)
				assert.True(t, err != nil && !strings.Contains(err.Error(), "canary"), "the error contains the secret: %v", err)
				return
			}
			assert.OK(t, err)
			assert.Equal(t, module, "x.PlainLoginModule", "module")
			assert.Equal(t, options["password"], tt.password, "password")
		})
	}
}

// Nobody logs in with another identity than the file's: what is not understood is refused.
func TestNeverAnotherIdentity(t *testing.T) {
	home := t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "USERPROFILE": home, "AWS_SHARED_CREDENTIALS_FILE": "", "AWS_CONFIG_FILE": "",
		"AWS_ACCESS_KEY_ID": "ENVIRONMENT", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_SESSION_TOKEN": "", "TEST_SECRET": "canary",
	} {
		t.Setenv(name, value)
	}
	assert.OK(t, os.Mkdir(filepath.Join(home, ".aws"), 0o700))
	for name, text := range map[string]string{
		"credentials": "[default]\naws_access_key_id = DEFAULT\naws_secret_access_key = canary\n[x]\naws_access_key_id=XKEY\nAWS_SECRET_ACCESS_KEY = canary # no comment\ns3 =\n  aws_access_key_id = NESTED\n",
		"config":      "[profile role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = x\n[profile  sso]\nsso_session = s\n[profile y]\naws_access_key_id = YKEY\naws_secret_access_key = canary\n",
	} {
		assert.OK(t, os.WriteFile(filepath.Join(home, ".aws", name), []byte(text), 0o600))
	}
	const (
		iam    = "software.amazon.msk.auth.iam.IAMLoginModule required"
		bearer = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
		scram  = "org.apache.kafka.common.security.scram.ScramLoginModule required"
	)
	for name, tt := range map[string]struct {
		mechanism, jaas string
		more            map[string]string
		given           map[string][]string
		want, wrong     string
	}{
		"the environment's key": {mechanism: MechAWS, jaas: iam, want: "AWS_MSK_IAM as ENVIRONMENT"},
		"a profile":             {mechanism: MechAWS, jaas: iam + ` awsProfileName="x"`, want: "AWS_MSK_IAM as XKEY"},
		"a profile of config":   {mechanism: MechAWS, jaas: iam + ` awsProfileName=y awsDebugCreds=true`, want: "AWS_MSK_IAM as YKEY"},
		"no such profile":       {mechanism: MechAWS, jaas: iam + ` awsProfileName="nosuch"`, wrong: "no access key"},
		"a profile with a role": {mechanism: MechAWS, jaas: iam + ` awsProfileName="role"`, wrong: "role_arn"},
		"a profile with SSO":    {mechanism: MechAWS, jaas: iam + ` awsProfileName="sso"`, wrong: "sso_session"},
		"a role":                {mechanism: MechAWS, jaas: iam + ` awsRoleArn="arn:aws:iam::1:role/r"`, wrong: "awsRoleArn"},
		"a key and a profile":   {mechanism: MechAWS, jaas: iam + ` awsProfileName="x"`, given: map[string][]string{"user": {"K"}}, wrong: "both"},
		"another handler":       {mechanism: MechAWS, jaas: iam, more: map[string]string{"sasl.client.callback.handler.class": "com.example.Mine"}, wrong: "com.example.Mine"[12:]},
		"MSK's own handler":     {mechanism: MechAWS, jaas: iam, more: map[string]string{"sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler"}, want: "AWS_MSK_IAM as ENVIRONMENT"},
		"IAM by a token":        {mechanism: MechOAuth, jaas: bearer, more: map[string]string{"sasl.login.callback.handler.class": "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"}, wrong: "IAMOAuthBearerLoginCallbackHandler"},
		"a module of others":    {mechanism: MechPlain, jaas: `com.example.VaultLoginModule required username="a" password="canary"`, wrong: "VaultLoginModule"},
		"a password alone":      {mechanism: MechPlain, jaas: "canary", wrong: "no login module"},
		"another mechanism's":   {mechanism: MechPlain, jaas: scram + ` username="a" password="canary"`, wrong: "not for PLAIN"},
		"a delegation token":    {mechanism: MechScram256, jaas: scram + ` username="a" password="canary" tokenauth="true"`, want: "SCRAM-SHA-256 as a"},
		"an option of others":   {mechanism: MechScram256, jaas: scram + ` username="a" password="canary" impersonate="b"`, wrong: "impersonate"},
		"Strimzi's names": {
			mechanism: MechOAuth, jaas: bearer + ` oauth.client.id="me" oauth.client.secret="canary" oauth.token.endpoint.uri="http://127.0.0.1:1/t"`,
			more: map[string]string{"sasl.login.callback.handler.class": "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"}, want: "OAUTHBEARER as me",
		},
		"Strimzi's refresh":      {mechanism: MechOAuth, jaas: bearer + ` oauth.refresh.token="canary"`, wrong: "oauth.refresh.token"},
		"a file with a token":    {mechanism: MechOAuth, jaas: bearer, more: map[string]string{"sasl.oauthbearer.token.endpoint.url": "file:" + home + "/token"}, want: "OAUTHBEARER"},
		"an unknown setting":     {mechanism: MechPlain, jaas: `x.PlainLoginModule required username="a" password="canary"`, more: map[string]string{"sasl.oauthbearer.jwt.retriever.class": "x"}, wrong: "sasl.oauthbearer.jwt.retriever.class"},
		"a provider":             {mechanism: MechPlain, jaas: `x.PlainLoginModule required username="a" password="canary"`, more: map[string]string{"security.providers": "x"}, wrong: "security.providers"},
		"a harmless setting":     {mechanism: MechPlain, jaas: `x.PlainLoginModule required username="a" password="canary"`, more: map[string]string{"sasl.login.refresh.window.factor": "0.8"}, want: "PLAIN as a"},
		"the options' own words": {mechanism: MechPlain, jaas: "com.example.VaultLoginModule required", given: map[string][]string{"user": {"b"}, "password": {"env:TEST_SECRET"}}, want: "PLAIN as b"},
	} {
		t.Run(name, func(t *testing.T) {
			props := map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": tt.mechanism, "sasl.jaas.config": tt.jaas + ";"}
			for k, v := range tt.more {
				props[k] = v
			}
			s, err := securityFor(t, tt.given, props)
			if tt.wrong != "" {
				assert.ErrorHas(t, err, tt.wrong)
				assert.True(t, err != nil && !strings.Contains(fmt.Sprint(err, advice.Hint(err)), "canary"), "the error contains the secret: %v", err)
				return
			}
			assert.OK(t, err)
			assert.True(t, strings.Contains(s.String(), tt.want), "got %q, want %q", s.String(), tt.want)
		})
	}
}
