//go:build e2e

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The user of the registries that need credentials. The hash is bcrypt's: the registry knows no other.
const (
	registryUser     = "alice"
	registryPassword = "planted-hunter22"
	registryHash     = "$2b$05$abcdefghijklmnopqrstuulqvlpJEsV3IxZNF5M0pKQGFqHI0glWO"
)

// registryProgram returns the path of Debian's docker-registry.
func registryProgram(ts *testscript.TestScript) string {
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		program = filepath.Join(ts.Getenv("REPO"), ".cache/debian/usr/bin/docker-registry")
	}
	return program
}

// anotherRegistry is the command `another NAME KIND...`: it starts a docker-registry with the images of that of the command `registry`,
// and sets $NAME to its address. Kinds are tls, clientcert, password and token. The files of TLS are in certs/: ca.crt, client.crt and
// client.key. With the kind again, it starts on the address in $NAME; the command `unregistry NAME` stops it.
func anotherRegistry(ts *testscript.TestScript, _ bool, args []string) {
	name, kinds := args[0], args[1:]
	address := "127.0.0.1:0"
	if slices.Contains(kinds, "again") {
		address = ts.Getenv(name)
	}
	l, err := net.Listen("tcp", address)
	ts.Check(err)
	host := l.Addr().String()
	ts.Check(l.Close())
	dir := ts.MkAbs("registry")
	certs := ts.MkAbs("certs")
	if _, err := os.Stat(certs); err != nil {
		writeCertificates(ts, certs)
	}
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp:\n  addr: %q\n", dir, host)
	if slices.Contains(kinds, "tls") {
		text += fmt.Sprintf("  tls:\n    certificate: %[1]s/server.crt\n    key: %[1]s/server.key\n", certs)
		if slices.Contains(kinds, "clientcert") {
			text += fmt.Sprintf("    clientcas: [%s/ca.crt]\n", certs)
		}
	}
	if slices.Contains(kinds, "password") {
		ts.Check(os.WriteFile(filepath.Join(certs, "htpasswd"), []byte(registryUser+":"+registryHash+"\n"), 0o600))
		text += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %s/htpasswd}}\n", certs)
	}
	if slices.Contains(kinds, "token") {
		text += fmt.Sprintf("auth: {token: {realm: %q, service: test, issuer: test, rootcertbundle: %s/token.crt}}\n",
			startTokens(ts, certs), certs)
	}
	config := filepath.Join(certs, name+".yml")
	ts.Check(os.WriteFile(config, []byte(text), 0o600))
	cmd := exec.Command(registryProgram(ts), "serve", config)
	ts.Check(cmd.Start())
	stop := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	ts.Defer(stop)
	runningRegistries(ts)[name] = stop
	for deadline := time.Now().Add(time.Minute); ; {
		c, err := net.Dial("tcp", host)
		if err == nil {
			ts.Check(c.Close())
			break
		}
		if time.Now().After(deadline) {
			ts.Fatalf("docker-registry does not listen: %v", err)
		}
	}
	ts.Setenv(name, host)
	_, port, err := net.SplitHostPort(host)
	ts.Check(err)
	ts.Setenv(name+"_PORT", port)
}

// stopRegistry is the command `unregistry NAME`.
func stopRegistry(ts *testscript.TestScript, _ bool, args []string) { runningRegistries(ts)[args[0]]() }

// registriesKey is the key of the functions in a script that stop its registries, by name.
type registriesKey struct{}

func runningRegistries(ts *testscript.TestScript) map[string]func() {
	return ts.Value(registriesKey{}).(map[string]func())
}

// writeCertificates creates an authority, and certificates for 127.0.0.1 and for a client.
func writeCertificates(ts *testscript.TestScript, dir string) {
	ts.Check(os.MkdirAll(dir, 0o755))
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	for i, name := range []string{"ca", "server", "client"} {
		c, key := *ca, caKey
		if name != "ca" {
			key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			ts.Check(err)
			c.SerialNumber, c.Subject.CommonName, c.IsCA = big.NewInt(int64(i+1)), name, false
			c.KeyUsage, c.IPAddresses = x509.KeyUsageDigitalSignature, []net.IP{net.IPv4(127, 0, 0, 1)}
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		}
		der, err := x509.CreateCertificate(rand.Reader, &c, ca, key.Public(), caKey)
		ts.Check(err)
		private, err := x509.MarshalECPrivateKey(key)
		ts.Check(err)
		writePEM(ts, filepath.Join(dir, name+".crt"), "CERTIFICATE", der)
		writePEM(ts, filepath.Join(dir, name+".key"), "EC PRIVATE KEY", private)
	}
}

func writePEM(ts *testscript.TestScript, path, kind string, der []byte) {
	ts.Check(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// startTokens starts a service for tokens that are signed with a key in dir/token.crt, and returns its URL.
func startTokens(ts *testscript.TestScript, dir string) string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(9), Subject: pkix.Name{CommonName: "tokens"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ts.Check(err)
	writePEM(ts, filepath.Join(dir, "token.crt"), "CERTIFICATE", der)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		if !ok {
			user, password = r.FormValue("username"), r.FormValue("password")
		}
		if user != registryUser || password != registryPassword {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		token, err := signToken(key, der, r.FormValue("scope"))
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "access_token": token, "expires_in": 300})
	}))
	ts.Defer(server.Close)
	return server.URL + "/token"
}

// signToken returns a token that grants a scope: repository:NAME:ACTIONS.
func signToken(key *rsa.PrivateKey, certificate []byte, scope string) (string, error) {
	access := []map[string]any{}
	if parts := strings.Split(scope, ":"); len(parts) == 3 {
		access = append(access, map[string]any{"type": parts[0], "name": parts[1], "actions": strings.Split(parts[2], ",")})
	}
	header, err := json.Marshal(map[string]any{
		"typ": "JWT", "alg": "RS256", "x5c": []string{base64.StdEncoding.EncodeToString(certificate)},
	})
	if err != nil {
		return "", err
	}
	now := time.Now().Unix()
	claims, err := json.Marshal(map[string]any{
		"iss": "test", "aud": "test", "sub": registryUser, "exp": now + 300, "nbf": now - 60, "iat": now, "jti": rand.Text(),
		"access": access,
	})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), err
}
