package configsource

import (
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

// source returns a source with these files, by path. A path that ends in a slash is a directory.
func source(t *testing.T, files map[string]string) Source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Source{Dir: dir, Credentials: filepath.Join(dir, "credentials")}
}

func TestValues(t *testing.T) {
	s := source(t, map[string]string{
		"configmaps/shop/color": "blue\n", "configmaps/shop/.hidden": "h", "configmaps/shop/color~": "old",
		"configmaps/shop/sub/x": "x", "configmaps/empty/": "", "configmaps/both/a": "directory", "secrets/db/password": "hunter2",
		"secrets/both/a":       "directory",
		"credentials/shop.tls": "key",
	})
	pod := &spec.Pod{
		ConfigMaps: []spec.ConfigMap{{Name: "both", Data: map[string]string{"a": "inline"}}},
		Secrets: []spec.Secret{
			{Name: "both", Data: spec.SecretData{"a": "inline"}},
			{Name: "tls", Credential: "shop.tls"},
			{Name: "none", Credential: "other"},
			{Name: "lost"},
			{Name: "blank", Data: spec.SecretData{}},
		},
	}
	for _, test := range []struct {
		kind, name string
		want       map[string][]byte
		err        string
		missing    bool
	}{
		{"configmap", "shop", map[string][]byte{"color": []byte("blue\n"), ".hidden": []byte("h")}, "", false},
		{"configmap", "empty", map[string][]byte{}, "", false},
		{"configmap", "both", map[string][]byte{"a": []byte("inline")}, "", false},
		{"configmap", "none", nil, `configmap "none" not found`, true},
		{"configmap", "../secrets/db", nil, `configmap "../secrets/db" not found`, true},
		{"secret", "db", map[string][]byte{"password": []byte("hunter2")}, "", false},
		{"secret", "both", map[string][]byte{"a": []byte("inline")}, "", false},
		{"secret", "tls", map[string][]byte{"shop.tls": []byte("key")}, "", false},
		{"secret", "none", nil, "no such file", true},
		{"secret", "nowhere", nil, `secret "nowhere" not found`, true},
		{"secret", "lost", nil, "lost with the state", false},
		{"secret", "blank", map[string][]byte{}, "", false},
	} {
		t.Run(test.kind+" "+test.name, func(t *testing.T) {
			get := s.ConfigMap
			if test.kind == "secret" {
				get = s.Secret
			}
			got, err := get(pod, test.name)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) ||
				errors.Is(err, fs.ErrNotExist) != test.missing {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
	if _, err := (Source{}).Secret(pod, "tls"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("credential without a directory of credentials: %v", err)
	}
	if _, err := (Source{}).ConfigMap(pod, "shop"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("config map without a directory: %v", err)
	}
}

func TestUnusableFiles(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(path string) error
		want   string
	}{
		{"readable by others", func(path string) error { return os.Chmod(path, 0o640) }, "(mode 0640): chmod 600"},
		{"too large", func(path string) error { return os.Truncate(path, maxBytes) }, "exceeds the maximum of 1048576 bytes"},
		{"FIFO", func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) }, "is not a regular file"},
		{"certificate that others can replace", func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("-----BEGIN CERTIFICATE-----\n"), 0o600), os.Chmod(path, 0o664))
		}, "(mode 0664): chmod 600"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := source(t, map[string]string{"secrets/db/a": "hunter2", "secrets/db/b": "hunter2"})
			if err := test.change(filepath.Join(s.Dir, "secrets/db/b")); err != nil {
				t.Fatal(err)
			}
			_, err := s.Secret(&spec.Pod{}, "db")
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// A directory is replaced atomically while it is read, in both usual ways. Values of two states must not be mixed.
func TestReplacedDirectory(t *testing.T) {
	s := source(t, map[string]string{
		"configmaps/linked.0/a": "0", "configmaps/linked.0/b": "0", "configmaps/linked.1/a": "1", "configmaps/linked.1/b": "1",
		"configmaps/inside/..0/a": "0", "configmaps/inside/..0/b": "0", "configmaps/inside/..1/a": "1", "configmaps/inside/..1/b": "1",
	})
	maps := filepath.Join(s.Dir, "configmaps")
	swap := func(link, target string) error {
		return errors.Join(os.Symlink(target, link+".new"), os.Rename(link+".new", link))
	}
	for _, err := range []error{
		os.Symlink("..data/a", filepath.Join(maps, "inside", "a")), os.Symlink("..data/b", filepath.Join(maps, "inside", "b")),
		swap(filepath.Join(maps, "linked"), "linked.0"), swap(filepath.Join(maps, "inside", "..data"), "..0"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 1; ; i++ {
			err := errors.Join(
				swap(filepath.Join(maps, "linked"), fmt.Sprintf("linked.%d", i%2)),
				swap(filepath.Join(maps, "inside", "..data"), fmt.Sprintf("..%d", i%2)),
			)
			select {
			case <-time.After(time.Duration(i%7) * 20 * time.Microsecond):
			case <-stop:
				stopped <- err
				return
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range 1000 {
		for _, name := range []string{"linked", "inside"} {
			got, err := s.ConfigMap(&spec.Pod{}, name)
			if err != nil || len(got) != 2 || len(got["a"]) != 1 || string(got["a"]) != string(got["b"]) {
				t.Fatalf("%s: %q, %v, want two equal values", name, got, err)
			}
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

// TestPublicFiles: a certificate may be readable by others beside a private key that is not, and nothing else may.
func TestPublicFiles(t *testing.T) {
	block := func(label string) string { return "-----BEGIN " + label + "-----\nAAAA\n-----END " + label + "-----\n" }
	certificate, key := block("CERTIFICATE"), block("PRIVATE KEY")
	for _, test := range []struct {
		name, content string
		public        bool
	}{
		{"certificate", certificate, true},
		{"chain with names", "# Issuer: CN=Example\n" + certificate + "\n# Root\n" + certificate, true},
		{"revocation list", block("X509 CRL"), true},
		{"Diffie-Hellman parameters", block("DH PARAMETERS"), true},
		{"DER", string(certificateDER(t)), true},
		{"private key", key, false},
		{"encrypted private key", block("ENCRYPTED PRIVATE KEY"), false},
		{"certificate and key", certificate + key, false},
		{"key that is damaged", certificate + "-----BEGIN RSA PRIVATE KEY", false},
		{"key of an unknown kind", certificate + block("OPENSSH PRIVATE KEY"), false},
		{"DER and more", string(certificateDER(t)) + "password", false},
		{"password", "hunter2", false},
		{"empty", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := source(t, map[string]string{"secrets/tls/tls.crt": test.content, "secrets/tls/tls.key": key})
			if err := os.Chmod(filepath.Join(s.Dir, "secrets/tls/tls.crt"), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := s.Secret(&spec.Pod{}, "tls")
			if test.public != (err == nil) || test.public && string(got["tls.crt"]) != test.content {
				t.Errorf("%q, %v; want public %v", got["tls.crt"], err, test.public)
			}
			const want = "tls.crt is accessible by other users than its owner (mode 0644): chmod 600"
			if !test.public && !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		})
	}
}

// certificateDER returns a certificate in DER.
func certificateDER(t *testing.T) []byte {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(nil, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
