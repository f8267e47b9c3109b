// Reads the monitor's data, all with GET.

export class BrokerDown extends Error {}

export async function read(path) {
  let reply;
  try {
    reply = await fetch(`api/${path}`, { cache: "no-store", signal: AbortSignal.timeout(15_000) });
  } catch (error) {
    throw new BrokerDown(`The monitor does not answer: ${error.message}`);
  }
  const body = await reply.json();
  if (reply.ok) return body;
  throw new BrokerDown(`The broker does not answer: ${body.error.message}`);
}
