package metrics

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// writeCertificate writes a certificate for 127.0.0.1 with a serial number, and its key.
func writeCertificate(t *testing.T, dir string, serial int64) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "podstead"}, NotBefore: time.Unix(0, 0),
		NotAfter:    time.Unix(1<<33, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// freeAddress returns an address at which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// get requests a URL until the server answers.
func get(t *testing.T, c *http.Client, url string) (status int, body string) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); ; {
		r, err := c.Get(url)
		if err == nil {
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			return r.StatusCode, string(text)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestServe serves metrics with and without TLS, and only them.
func TestServe(t *testing.T) {
	cert, key := writeCertificate(t, t.TempDir(), 1)
	for name, a := range map[string]Address{"plain": {}, "TLS": {CertFile: cert, KeyFile: key}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			a.Address = freeAddress(t)
			ctx, cancel := context.WithCancel(t.Context())
			var serving sync.WaitGroup
			serving.Go(func() { w.Serve(ctx, a) })
			url, client := "http://"+a.Address, &http.Client{Transport: &http.Transport{}}
			if a.CertFile != "" {
				pool := x509.NewCertPool()
				pool.AppendCertsFromPEM([]byte(read(t, cert)))
				url, client.Transport = "https://"+a.Address, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
			}
			if status, body := get(t, client, url+"/metrics"); status != http.StatusOK ||
				!strings.Contains(body, "\npodstead_metrics_address_up 1\n") {
				t.Errorf("status %d, %s", status, body)
			}
			if status, body := get(t, client, url+"/debug/pprof/"); status != http.StatusNotFound || !strings.Contains(body, "/metrics") {
				t.Errorf("another path: %d, %s", status, body)
			}
			client.CloseIdleConnections()
			cancel()
			serving.Wait()
		})
	}
}

// TestServeWithoutCertificate: an address that cannot be served is reported by a metric, and the end of ctx ends the attempts.
func TestServeWithoutCertificate(t *testing.T) {
	w := newWorld(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { w.Serve(ctx, Address{freeAddress(t), "/none", "/none"}) })
	w.await(t, "podstead_metrics_address_up 0", func(f map[string]*dto.MetricFamily) bool {
		up, ok := value(f["podstead_metrics_address_up"], "")
		return ok && up == 0
	})
	cancel()
	serving.Wait()
}

// TestCertificateReload: a certificate that changes is used, an invalid one is not. The files are compared at most once in an interval,
// when a client connects.
func TestCertificateReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cert, key := writeCertificate(t, dir, 1)
		c := &certificate{cert: cert, key: key, log: slog.New(slog.DiscardHandler)}
		if err := c.load(); err != nil {
			t.Fatal(err)
		}
		expect := func(want int64) {
			t.Helper()
			got, err := c.get(&tls.ClientHelloInfo{})
			if err != nil {
				t.Fatal(err)
			}
			if serial := got.Leaf.SerialNumber.Int64(); serial != want {
				t.Errorf("serial number %d, want %d", serial, want)
			}
		}
		if err := os.WriteFile(cert, []byte("no certificate"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(certInterval)
		expect(1) // the file is invalid
		writeCertificate(t, dir, 2)
		expect(1) // the interval has not passed
		time.Sleep(certInterval - time.Second)
		expect(1)
		time.Sleep(time.Second)
		expect(2)
	})
}

// TestIdleConnections: clients that keep all connections open do not keep others waiting for longer than a scrape interval.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	if idleTimeout > time.Minute {
		t.Errorf("idle connections stay open for %v", idleTimeout)
	}
	w := newWorld(t, nil)
	w.idle = time.Second
	a := Address{Address: freeAddress(t)}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { w.Serve(ctx, a) })
	for range maxConnections {
		idle := &http.Client{Transport: &http.Transport{}}
		defer idle.CloseIdleConnections()
		get(t, idle, "http://"+a.Address+"/metrics")
	}
	begun := time.Now()
	other := &http.Client{Transport: &http.Transport{}}
	defer other.CloseIdleConnections()
	if status, _ := get(t, other, "http://"+a.Address+"/metrics"); status != http.StatusOK || time.Since(begun) > time.Minute {
		t.Errorf("status %d after %v", status, time.Since(begun))
	}
	cancel()
	serving.Wait()
}
