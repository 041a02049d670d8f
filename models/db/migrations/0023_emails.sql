-- E-mails that wait to be sent, best effort.
CREATE TABLE emails (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL REFERENCES merchants,
    object_id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('cheque', 'receipt', 'payment', 'notice')),
    recipient text NOT NULL,
    subject text NOT NULL,
    -- Sealed: a cheque's holds its claim address, which is as good as money. Emptied once it is sent or given up.
    body_box text NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'dead')),
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT app_now(),
    lease uuid,
    leased_until timestamptz,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT app_now()
);
-- By merchant, so that nobody's crowd stands before another's.
CREATE INDEX emails_due ON emails (merchant_id, next_attempt_at) WHERE status = 'pending';
CREATE INDEX emails_over ON emails (created_at) WHERE status <> 'pending';
-- How many were asked for lately is counted for each payment.
CREATE INDEX emails_of_payment ON emails (object_id, created_at) WHERE kind = 'payment';
CREATE INDEX emails_of_merchant ON emails (merchant_id, created_at);
CREATE INDEX emails_notices ON emails (merchant_id, id) WHERE kind = 'notice';
-- E-mails of a day are counted by mailbox: ann+1@mail.example is delivered to ann@mail.example.
CREATE INDEX emails_of_mailbox
    ON emails (merchant_id, regexp_replace(lower(recipient), '\+[^@]*@', '@'), created_at);
