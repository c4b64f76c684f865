package kafkatest

import (
	"carronade/internal/testkit/assert"
	"testing"
)

func TestNoJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	assert.ErrorHas(t, checkJava(), "apt-get install default-jre-headless")
}
