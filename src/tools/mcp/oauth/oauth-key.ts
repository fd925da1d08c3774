/** Client authentication with a private key (`private_key_jwt`) instead of a secret. */
import { createPrivateKey } from "node:crypto";
import type { OAuthClientProvider } from "@modelcontextprotocol/client";
import { TroupeError } from "../../../protocol/errors.ts";

type Authenticate = NonNullable<OAuthClientProvider["addClientAuthentication"]>;

/** A secret that is a private key in PEM is never sent; it signs token requests. */
export function isPrivateKey(secret: string | undefined): secret is string {
  return secret?.includes("-----BEGIN") === true && secret.includes("PRIVATE KEY-----");
}

/** Signs each token request. The key must be RSA, EC (P-256, P-384, P-521) or Ed25519. */
export function signedRequests(clientId: string, pem: string): Authenticate {
  const { key, alg } = readKey(pem);
  return async (...request) => {
    const { createPrivateKeyJwtAuth } = await import("@modelcontextprotocol/client");
    await createPrivateKeyJwtAuth({ issuer: clientId, subject: clientId, privateKey: key, alg })(...request);
  };
}

const ALGORITHMS: Readonly<Record<string, string>> = { rsa: "RS256", ed25519: "EdDSA" };
const CURVES: Readonly<Record<string, string>> = { prime256v1: "ES256", secp384r1: "ES384", secp521r1: "ES512" };

function readKey(pem: string): { key: string; alg: string } {
  try {
    const key = createPrivateKey(pem);
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
    const alg = type === "ec" ? CURVES[details?.namedCurve ?? ""] : ALGORITHMS[type ?? ""];
    if (alg !== undefined) return { key: key.export({ type: "pkcs8", format: "pem" }).toString(), alg };
  } catch {
    // Reported below, without any part of the key.
  }
  throw new TroupeError("usage", "The key of the MCP client cannot be used.", {
    hint: "TROUPE_MCP_CLIENT_SECRET takes an RSA, EC or Ed25519 private key in PEM, without a password.",
  });
}
