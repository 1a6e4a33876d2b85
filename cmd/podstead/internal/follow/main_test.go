package follow

import (
	"os"
	"testing"

	"github.com/podstead/podstead/test/parallel"
)

func TestMain(m *testing.M) {
	parallel.Set()
	os.Exit(m.Run())
}
