// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// hub does in Go what operator/control does: per node the pods as they are wanted, per stream a wake-up and never a
// queue. A changed pod is one delta.
type hub struct {
	mutex   sync.Mutex
	pods    map[string][]*pod
	wake    map[string]chan struct{}
	reviews map[[32]byte]string // by digest of the token
}

// review stands for the TokenReview: it decodes the claims, and remembers the answer.
func (h *hub) review(stream grpc.ServerStream) (string, error) {
	values := metadata.ValueFromIncomingContext(stream.Context(), "authorization")
	if len(values) != 1 {
		return "", status.Error(codes.Unauthenticated, "no token")
	}
	digest := sha256.Sum256([]byte(values[0]))
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if node, found := h.reviews[digest]; found {
		return node, nil
	}
	parts := strings.Split(values[0], ".")
	if len(parts) != 3 {
		return "", status.Error(codes.Unauthenticated, "no JWT")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct{ Node string }
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil {
		return "", status.Error(codes.Unauthenticated, err.Error())
	}
	h.reviews[digest] = claims.Node
	return claims.Node, nil
}

func (h *hub) connect(_ any, stream grpc.ServerStream) error {
	node, err := h.review(stream)
	if err != nil {
		return err
	}
	var hello []byte
	if err := stream.RecvMsg(&hello); err != nil {
		return err
	}
	wake := make(chan struct{}, 1)
	h.mutex.Lock()
	h.wake[node] = wake
	pods := h.pods[node]
	first := *pods[0]
	h.mutex.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var message []byte
			if stream.RecvMsg(&message) != nil {
				return
			}
		}
	}()
	version := uint64(1)
	if err := stream.SendMsg(snapshotMessage(version, append([]*pod{&first}, pods[1:]...))); err != nil {
		return err
	}
	for {
		select {
		case <-ended:
			return nil
		case <-wake:
			h.mutex.Lock()
			changed := *h.pods[node][0]
			h.mutex.Unlock()
			version++
			if err := stream.SendMsg(deltaMessage(version, &changed)); err != nil {
				return err
			}
		}
	}
}

func (h *hub) change(round int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for node, pods := range h.pods {
		pods[0].id = fmt.Sprintf("container-%d", round)
		select {
		case h.wake[node] <- struct{}{}:
		default:
		}
	}
}

func selfSigned() (tls.Certificate, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func serveAgents(nodes, pods int) {
	h := &hub{pods: map[string][]*pod{}, wake: map[string]chan struct{}{}, reviews: map[[32]byte]string{}}
	for n := range nodes {
		node := fmt.Sprintf("n%d", n)
		for p := range pods {
			name := fmt.Sprintf("checkout-%d-%d", n, p)
			h.pods[node] = append(h.pods[node], &pod{uid: "uid-" + name, name: name, id: "container-0",
				labels: map[string]string{"service_name": "checkout", "namespace": "shop", "pod": name, "container": "app",
					"node": node}})
		}
	}
	certificate, authority := selfSigned()
	file, err := os.CreateTemp("", "controlload-*.crt")
	check(err)
	defer os.Remove(file.Name())
	_, err = file.Write(authority)
	check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&certificate)), grpc.ForceServerCodec(rawCodec{}))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "flamefleet.fleet.v1alpha1.FleetControl", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: "Connect", Handler: h.connect, ServerStreams: true, ClientStreams: true}}}, h)
	go func() { check(server.Serve(listener)) }()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port, file.Name())
	lines := bufio.NewScanner(os.Stdin)
	for round := 1; lines.Scan(); round++ {
		h.change(round)
	}
}
