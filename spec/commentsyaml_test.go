package spec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

// TestCommentsOfYAML checks that comments of manifests are at their values in pod files, and that texts with # are no comments.
func TestCommentsOfYAML(t *testing.T) {
	const file = "# The shop.\r\n" + `# Ask Ada before a change.

apiVersion: v1
kind: Pod # a pod
metadata:
  name: web    # its name
  annotations: {a: "x # no comment", 'b': d#e} # two
spec:
  # How long it may take.
  terminationGracePeriodSeconds: 5
  containers:
  # The server.
  - name: app # the first
    image: &image !!str "nginx:1"
    args:
    - |
      # of the script
      echo 'one # two'
    # The second argument.
    - 'it''s # no
      comment'
    env:
    - {name: A, value: it's} # plain
    - {name: B, value: !!str "x # \" # y"}
    # The end of the first pod.
---
# Another pod.
apiVersion: v1
kind: Pod
metadata: {name: db}
spec: {containers: [{name: db, image: db}]}
# The end.
`
	const want = `# The shop.
# Ask Ada before a change.

[[pods]]
# a pod
name = "web"    # its name
annotations = { a = "x # no comment", b = "d#e" }    # two
# How long it may take.
terminationGracePeriodSeconds = 5

# The server.
[[pods.containers]]
name = "app"    # the first
image = "nginx:1"
args = [
  '''
# of the script
echo 'one # two'
''',
  # The second argument.
  "it's # no comment",
]
env.A = "it's"    # plain
env.B = "x # \" # y"

# The end of the first pod.
# Another pod.
[[pods]]
name = "db"

[[pods.containers]]
name = "db"
image = "db"
# The end.
`
	text, problems := spec.Options{}.Convert("shop.yaml", []byte(file), true)
	if len(problems.Errors()) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
}
