package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/signing"
)

func TestVerificationPolicy(t *testing.T) {
	key := filepath.Join(t.TempDir(), "shop.pub")
	if err := os.WriteFile(key, signing.NewKey("ecdsa").Public, 0o600); err != nil {
		t.Fatal(err)
	}
	text := "[images]\nverifyDefault = \"reject\"\n[[images.verify]]\nprefix = \"registry.example.com/shop\"\nkeys = [\"" + key + "\"]\n" +
		"[[images.verify]]\nprefix = \"docker.io\"\ntype = \"accept\"\n[[images.verify]]\nprefix = \"localhost:5000/a/b\"\ntype = " +
		"\"reject\"\n"
	c, err := load(t, text, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Verification()
	if err != nil {
		t.Fatal(err)
	}
	for repo, want := range map[string]signature.Type{
		"registry.example.com/shop/web": signature.Signed, "docker.io/library/nginx": signature.Accept,
		"localhost:5000/a/b": signature.Reject, "quay.io/x": signature.Reject,
	} {
		if r := p.For(repo); r.Type != want || want == signature.Signed && (len(r.Keys) != 1 || r.Keys[0].Name != key) {
			t.Errorf("%s: %+v, want %s", repo, r, want)
		}
	}
	empty, err := load(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if merged, _, restart := empty.Reload(c); len(restart) > 0 || len(merged.Images.Verify) != 3 ||
		merged.Images.VerifyDefault != "reject" {
		t.Errorf("%+v, needs a restart: %v", merged.Images, restart)
	}
	if none, err := empty.Verification(); err != nil || none.EqualRules(p) || none.For("quay.io/x").Type != signature.Accept {
		t.Errorf("no rules: %+v, %v", none, err)
	}
}

func TestInvalidVerificationRules(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"good.pub": string(signing.NewKey("ecdsa").Public), "bad.pub": "hello"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const rule = "[[images.verify]]\n"
	for name, c := range map[string]struct{ text, want string }{
		"not an array": {"[images.verify]\nprefix = \"docker.io\"\n", "podstead.toml:1:"},
		"unknown key":  {rule + "prefixes = \"docker.io\"\n", "podstead.toml:2:1: images.verify[0].prefixes"},
		"no prefix":    {rule + "keys = [\"/good.pub\"]\n", "podstead.toml:1:"},
		"short name": {
			rule + "prefix = \"nginx\"\ntype = \"accept\"\n",
			`podstead.toml:2:10: images.verify[0].prefix: "nginx": must start with a registry`,
		},
		"tag":              {rule + "prefix = \"docker.io/library/nginx:1\"\ntype = \"accept\"\n", "without a tag"},
		"slash at the end": {rule + "prefix = \"docker.io/library/\"\ntype = \"accept\"\n", "a slash at the end"},
		"upper case": {
			rule + "prefix = \"docker.io/Library\"\ntype = \"accept\"\n", "must be a registry or the start of a repository",
		},
		"no keys": {rule + "prefix = \"docker.io\"\n", "keys: Required value for the type signed"},
		"keys not needed": {
			rule + "prefix = \"docker.io\"\ntype = \"reject\"\nkeys = [\"/good.pub\"]\n",
			"podstead.toml:4:1: images.verify[0].keys: must be empty for the type reject",
		},
		"other type": {
			rule + "prefix = \"docker.io\"\ntype = \"ignore\"\n",
			"podstead.toml:3:8: images.verify[0].type: must be one of signed, accept, reject",
		},
		"relative path": {
			rule + "prefix = \"docker.io\"\nkeys = [\"a.pub\"]\n",
			`podstead.toml:3:9: images.verify[0].keys[0]: "a.pub": must be an absolute path`,
		},
		"twice": {
			rule + "prefix = \"docker.io\"\ntype = \"accept\"\n" + rule + "prefix = \"docker.io\"\ntype = \"reject\"\n",
			`podstead.toml:5:10: images.verify[1].prefix: "docker.io": another rule has this prefix`,
		},
		"default": {"[images]\nverifyDefault = \"signed\"\n", "must be one of accept, reject"},
		"missing key": {
			rule + "prefix = \"docker.io\"\nkeys = [\"" + dir + "/good.pub\", \"" + dir + "/none.pub\"]\n",
			"images.verify[0].keys[1]: \"" + dir + "/none.pub\": no such file or directory",
		},
		"invalid key": {rule + "prefix = \"docker.io\"\nkeys = [\"" + dir + "/bad.pub\"]\n", "not a public key in PEM format"},
	} {
		conf, err := load(t, c.text, nil, nil)
		if err == nil {
			_, err = conf.Verification()
		}
		if _, ok := errors.AsType[spec.Problems](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
