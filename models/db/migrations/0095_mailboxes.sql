-- no transaction
-- E-mails of a day are counted by mailbox: ann+1@mail.example is delivered to ann@mail.example. The version before
-- counts without its index for the length of a deploy.
DROP INDEX CONCURRENTLY IF EXISTS emails_of_mailbox;
CREATE INDEX CONCURRENTLY emails_of_mailbox
    ON emails (merchant_id, regexp_replace(lower(recipient), '\+[^@]*@', '@'), created_at);
DROP INDEX CONCURRENTLY IF EXISTS emails_of_recipient;
